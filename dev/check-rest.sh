#!/usr/bin/env bash
# The checks beside the tests. Each step says its name and time; the first that fails, or takes over 15 minutes, ends
# the run.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
  local name=$1 begin=$SECONDS
  shift
  printf '== %s\n' "$name"
  timeout --kill-after=10 900 "$@" || {
    local code=$?
    [ "$code" != 124 ] || printf '== %s did not end within 900 s\n' "$name" >&2
    printf '== %s FAILED (exit %s)\n' "$name" "$code" >&2
    exit 1
  }
  printf '== %s took %s s\n' "$name" "$((SECONDS - begin))"
}

dev/deps.sh test
step 'format' make --no-print-directory lint
step 'documents' dev/docs.sh
step 'release build' swift build -c release --product weir
step 'benchmarks run' make --no-print-directory bench BENCH=--smoke
step 'benchmark of a cluster runs' make --no-print-directory bench-cluster BENCH=--smoke
step 'WebSocket storm' make --no-print-directory storm DEVICES="${DEVICES:-300}"
step 'durability' make --no-print-directory durability RUNS="${RUNS:-5}"
step 'release build of the kill runs' swift build -c release --product kill-run
step 'durability of a cluster' .build/release/kill-run --cluster --runs "${CLUSTER_RUNS:-3}" --kinds node,crash,both \
  --rate "${CLUSTER_RATE:-2000}" --served-within 60
step 'bulk job under kills' .build/release/kill-run --bulk "${MESSAGES:-20000}" --devices 50 \
  --server-kills 2 --sender-kills 1 --rate 2000
step 'soak' dev/load_proofs.py soak "${SOAK_MINUTES:-0.4}"
step 'simulation' make --no-print-directory simulate NODES=1 SEEDS="${SEEDS:-1...100}"
step 'simulation of nodes' make --no-print-directory simulate NODES=3 SEEDS="${NODE_SEEDS:-1...30}"
# A short look with a fixed seed; `make fuzz` searches.
export FUZZ_SEED=${FUZZ_SEED:-1}
step 'fuzz' dev/fuzz.sh "${SECONDS_PER_FUZZ:-5}"
# Each builds everything once more, for which the continuous integration has no time; its fuzz targets run under the
# address sanitizer.
if [ "${CI:-}" != true ]; then
  step 'address sanitizer' dev/sanitize.sh address
  step 'thread sanitizer' dev/sanitize.sh thread
fi
printf '== every check passed\n'
