#!/bin/bash
# Compiler launcher for CUDA: runs the command and keeps its messages in the object file's folder as x.o.ptxas, where
# tests/backend/registers_test.py reads how many registers each kernel uses.
object=
for ((i = 1; i < $#; ++i)); do
  if [ "${!i}" = -o ]; then
    next=$((i + 1))
    object=${!next}
  fi
done
report=${object:-/tmp/$$}.ptxas
"$@" 2> "$report"
status=$?
# The user sees everything that is not a report of ptxas.
grep -vE '^ptxas info|bytes stack frame|^$' "$report" >&2
[ -n "$object" ] || rm -f "$report"
exit $status
