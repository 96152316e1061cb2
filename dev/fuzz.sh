#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and the address sanitizer and runs each for some seconds.
#
#   dev/fuzz.sh SECONDS [TARGET]
#
# FUZZ_SEED=N makes two runs of the same code try the same inputs.
#
# A target is Fuzzing/NAME.swift. Its first line names the modules it needs, in build order:
#   // modules: Bytes Seams HTTPCore
# They are compiled from Sources here, because code under test must be instrumented and the package must stay free
# of unsafe flags. Inputs that were found to matter stay in Fuzzing/corpus/NAME and are run first; a crash is written
# to artifacts/.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds}
only=${2:-}
export SWIFT_BACKTRACE=enable=no

work=.build/fuzz
mkdir -p "$work" artifacts
flags=(-O -parse-as-library -swift-version 6 -package-name weir -sanitize=fuzzer,address
  -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault
  -enable-upcoming-feature MemberImportVisibility -I "$work")
for module in Sources/C*/module.modulemap; do flags+=(-I "$(dirname "$module")"); done
for option in $(pkg-config --cflags openssl libxml-2.0 libuv sqlite3 libnghttp2 zlib); do flags+=(-Xcc "$option"); done

targets=0
for source in Fuzzing/*.swift; do
  name=$(basename "$source" .swift)
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  targets=$((targets + 1))
  modules=$(sed -n '1s,^// modules: ,,p' "$source")
  [ -n "$modules" ] || { printf 'fuzz: %s does not name its modules\n' "$source" >&2; exit 1; }
  objects=()
  for module in $modules; do
    if [ ! -e "$work/$module.done" ] || [ -n "$(find "Sources/$module" -newer "$work/$module.done" -print -quit)" ]; then
      mapfile -t files < <(find "Sources/$module" -name '*.swift' | sort)
      swiftc "${flags[@]}" -whole-module-optimization -module-name "$module" \
        -emit-module -emit-module-path "$work/$module.swiftmodule" -c -o "$work/$module.o" "${files[@]}"
      touch "$work/$module.done"
    fi
    objects+=("$work/$module.o")
  done
  swiftc "${flags[@]}" -module-name "Fuzz$name" "$source" "${objects[@]}" -use-ld=lld -o "$work/$name" \
    -lhttp_parser $(pkg-config --libs openssl libxml-2.0 libuv sqlite3 libnghttp2 zlib)
  mkdir -p "$work/found/$name" "Fuzzing/corpus/$name"
  printf 'fuzz: %s for %s s\n' "$name" "$seconds"
  # To a file and not a pipe: a reader of the pipe can hang after a crash.
  if ! ASAN_OPTIONS=detect_leaks=0 "$work/$name" -max_total_time="$seconds" ${FUZZ_SEED:+-seed="$FUZZ_SEED"} -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="artifacts/$name-" "$work/found/$name" "Fuzzing/corpus/$name" \
    >"$work/$name.log" 2>&1; then
    tail -n 40 "$work/$name.log" >&2
    printf 'fuzz: %s failed; the input is in artifacts/\n' "$name" >&2
    exit 1
  fi
  # More than the first few inputs, or nothing was tried.
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
  [ "${runs:-0}" -gt 100 ] || { printf 'fuzz: %s ran only %s inputs\n' "$name" "${runs:-0}" >&2; exit 1; }
  printf 'fuzz: %s is fine after %s inputs\n' "$name" "$runs"
done
[ "$targets" -gt 0 ] || { printf 'fuzz: no target %s\n' "$only" >&2; exit 1; }
