#!/bin/bash
# about 235 s: every benchmark builds, and runs one short round
set -uo pipefail
jobs=${SATRAP_JOBS:-$(nproc)}
[ -f build/release/build.ninja ] || cmake --preset release > /dev/null || exit 1
cmake --build build/release -j "$jobs" --target benches satrap satrap_libtorch || exit 1
passed=0 failed=0 skipped=0
for program in build/release/bench/*_bench; do
  arguments=(--benchmark_min_time=0.001)
  # The one that is no program of Google Benchmark.
  [[ $program != */trainer_step_bench ]] || arguments=(datasets/adult/quickstart.yaml 1)
  if output=$(timeout 300 "$program" "${arguments[@]}" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf '%s\n' "$output" | tail -n 15
    echo "FAILED $program"
  fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
