#!/bin/bash
# tidy.sh FILE: clang-tidy of a file that build/tidy compiles, with the settings of .clang-tidy; prints nothing
# but findings. Sources that are included by it come with what they are included for.
if ! output=$(clang-tidy-19 --quiet -p build/tidy --checks=-bugprone-suspicious-include \
  --extra-arg=-Wno-error --extra-arg=-Wno-unknown-warning-option "$1" 2> /dev/null); then
  echo "$output"
  echo "tidy: $1"
  exit 1
fi
