#!/bin/sh
# Runs a fuzz target: Fuzzing/run.sh TARGET SECONDS [libFuzzer options]
# Seeds come from Corpus/TARGET and Found/TARGET; an input that fails is put into Found/TARGET, to be kept.
set -eu
cd "$(dirname "$0")"
target=${1:?usage: run.sh TARGET SECONDS}
seconds=${2:?usage: run.sh TARGET SECONDS}
shift 2
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swiftc)")")")
FUZZ_RUNTIME=$(ls "$toolchain"/lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-"$(uname -m)".a | head -n 1)
export FUZZ_RUNTIME
swift build -c release --product "$target" -j 2
mkdir -p ".build/corpus/$target" "Found/$target" "Corpus/$target"
# The backtracer holds up a crash whose output goes to a pipe; LeakSanitizer sees the runtime's own.
export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0
exec ".build/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
  -artifact_prefix="Found/$target/" -print_final_stats=1 "$@" \
  ".build/corpus/$target" "Corpus/$target" "Found/$target"
