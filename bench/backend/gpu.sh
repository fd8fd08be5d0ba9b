#!/bin/bash
# Runs everything that needs a GPU, checks before measurements:
#   bench/backend/gpu.sh [OUT]          (default: bench/results/<device>-<commit>)
# Build beforehand on a machine with nvcc; this script only runs the programs:
#   cmake --preset cuda && cmake --build --preset cuda --target backend_tests embedding_tests \
#     backend_{plan,resolve,pool_forward,backward,export}_bench
# OUT gets checks.txt, one .json per operation, pytorch.json and table.md. Stops at the first failed
# check: the speed of a wrong kernel is meaningless. Uses compute-sanitizer if it is installed, and
# records its absence.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${SATRAP_BUILD:-build/cuda}
device=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr ' /' '__')
commit=$(git rev-parse --short HEAD 2> /dev/null || echo unknown)
out=${1:-bench/results/$device-$commit}
mkdir -p "$out"

{
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv
  echo "commit $commit"
  echo "== the tests of the executor, on the device"
  SATRAP_REQUIRE_GPU=1 "$build/tests/backend_tests"
  SATRAP_REQUIRE_GPU=1 "$build/tests/embedding_tests" --gtest_filter='*Group*'
  for tool in memcheck racecheck; do
    if command -v compute-sanitizer > /dev/null; then
      echo "== compute-sanitizer $tool"
      compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/backend_tests"
    else
      echo "== compute-sanitizer $tool: not installed, NOT RUN"
    fi
  done
} 2>&1 | tee "$out/checks.txt"

for operation in plan resolve pool_forward backward export; do
  "$build/bench/backend_${operation}_bench" --benchmark_out="$out/$operation.json" \
    --benchmark_out_format=json
done

python=python3
[ ! -x .venv/bin/python ] || python=.venv/bin/python
"$python" bench/backend/pytorch_reference.py "$out/pytorch.json"
"$python" bench/backend/table.py "$out" | tee "$out/table.md"
