#!/usr/bin/env bash
# Runs tests under a sanitizer, in a build directory of its own.
#
#   dev/sanitize.sh thread     suites with threads, loops and shared state
#   dev/sanitize.sh address    suites that meet hostile bytes or memory of C libraries
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  thread)
    scratch=.build/tsan
    # Suites that use Synchronization.Mutex between threads (TestKit does, and so every test of a live server) are left
    # out: the sanitizer cannot see into it.
    suites='TelemetryTests|EventLoopsTests|DeliveryCoreTests|ConnectionServerTests.(Shard|LoginGuard|FaultRegistry)'
    export TSAN_OPTIONS=halt_on_error=1
    ;;
  address)
    scratch=.build/asan
    suites='BytesTests|JSONCoreTests|XMLCoreTests|XMPPCoreTests|HTTPCoreTests|TLSCoreTests|WebSocketCoreTests|PushXMPPTests|StoreTests|EventLoopsTests|ConnectionServerTests'
    # The leak checker reports the test runner's own memory.
    export ASAN_OPTIONS=detect_leaks=0
    ;;
  *)
    echo 'sanitize: say thread or address' >&2
    exit 1
    ;;
esac

swift build --build-tests --sanitize="$1" --scratch-path "$scratch"
swift test --skip-build --no-parallel --sanitize="$1" --scratch-path "$scratch" --filter "$suites"
