#!/bin/bash
# tidy.sh FILE: runs clang-tidy, with the settings of .clang-tidy, on a file that build/tidy compiles; prints only
# findings. Sources that it includes are checked with it.
if ! output=$(.venv/bin/clang-tidy --quiet -p build/tidy --checks=-bugprone-suspicious-include \
  --extra-arg=-Wno-error --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wthread-safety \
  --removed-arg=-fno-tree-loop-distribute-patterns "$1" 2> /dev/null); then
  echo "$output"
  echo "tidy: $1"
  exit 1
fi
