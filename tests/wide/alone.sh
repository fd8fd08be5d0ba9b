#!/bin/bash
# about 455 s: every source and every header compiles alone
# Needs a build of release, which it makes if there is none. tests/run.sh release checks a sixteenth.
set -euo pipefail
[ -f build/release/build.ninja ] || cmake --preset release > /dev/null
targets=()
for kind in source header; do
  for part in {0..15}; do targets+=("${kind}_tests_$part"); done
done
cmake --build build/release -j "${SATRAP_JOBS:-$(nproc)}" --target "${targets[@]}"
