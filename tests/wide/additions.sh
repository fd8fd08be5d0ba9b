#!/bin/bash
# about 160 s: one addition of each kind of ARCHITECTURE.md, section 7, touches the listed places alone, and works
set -uo pipefail
python=.venv/bin/python
[ -x "$python" ] || python=python3
output=$("$python" -W ignore tests/wide/additions/additions_test.py 2>&1 | tee -a /dev/stderr)
status=$?
failed=$(grep -cE '^(ERROR|FAIL): ' <<< "$output")
[ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
passed=$(grep -cE '\.\.\. ok$' <<< "$output")
skipped=$(grep -c ' \.\.\. skipped ' <<< "$output")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
