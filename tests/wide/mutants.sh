#!/bin/bash
# about 215 s: every mutant of kernels and of the host's code for them is caught
# tests/run.sh release tries an eighth.
set -uo pipefail
build=build/release
[ -f "$build/build.ninja" ] || cmake --preset release > /dev/null || exit 1
targets=(backend_simt_tests satrap satrap_on_simt)
ninja -C "$build" -t query backend_ptx_tests > /dev/null 2>&1 && targets+=(backend_ptx_tests)
cmake --build "$build" -j "${SATRAP_JOBS:-$(nproc)}" --target "${targets[@]}" || exit 1
python=.venv/bin/python
[ -x "$python" ] || python=python3
passed=0 failed=0 skipped=0
lists=(tests/backend/mutants.py tests/embedding/mutants.py)
if [ ${#targets[@]} = 4 ]; then
  lists+=(tests/backend/ptx_mutants.py)
else
  echo "SKIPPED tests/backend/ptx_mutants.py: no nvcc"
  skipped=1
fi
for list in "${lists[@]}"; do
  output=$("$python" "$list" "$build" | tee -a /dev/stderr)
  status=$?
  caught=$(grep -c '^caught' <<< "$output")
  passed=$((passed + caught))
  if [ "$status" != 0 ]; then failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
