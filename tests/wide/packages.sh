#!/bin/bash
# about 600 s: the archive, the .deb and the wheel, of one build, train where nothing else is, and beside another pyarrow
# Downloads that pyarrow and NumPy. tests/launch makes packages of the preset release instead, and takes each alone.
set -uo pipefail
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
./launch/setup.sh package || exit 1
./launch/package.sh "$packages" || exit 1
passed=0 failed=0 skipped=0
export SATRAP_PACKAGES=$packages SATRAP_BUILD_DIR=build/package SATRAP_SOURCE_DIR=$PWD
for test in tests/launch/package_test.py tests/launch/wheel_test.py; do
  output=$(.venv/bin/python "$test" 2>&1 | tee -a /dev/stderr)
  status=$?
  ok=$(grep -c ' \.\.\. ok$' <<< "$output")
  out=$(grep -c ' \.\.\. skipped ' <<< "$output")
  passed=$((passed + ok)) skipped=$((skipped + out))
  if [ "$status" != 0 ]; then
    echo "FAILED $test"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
