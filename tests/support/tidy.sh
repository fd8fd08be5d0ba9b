#!/bin/bash
# tidy.sh FILE: clang-tidy with the settings of .clang-tidy; prints nothing but findings.
if ! output=$(clang-tidy-19 --quiet -p build/release --extra-arg=-Wno-error \
  --extra-arg=-Wno-unknown-warning-option "$1" 2> /dev/null); then
  echo "$output"
  echo "tidy: $1"
  exit 1
fi
