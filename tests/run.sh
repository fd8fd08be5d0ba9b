#!/bin/bash
# Sets this machine up and runs checks of the project:
#   tests/run.sh [STAGE]...     without an argument: release
#     release        builds for this machine and runs its tests
#     quick          the part of release that an uncommitted change needs
#     debug          unoptimised, each source compiled alone
#     asan, tsan     with AddressSanitizer and UndefinedBehaviorSanitizer, with ThreadSanitizer
#     fuzz           the fuzzers, for some seconds each
#     cuda           cuda/ compiled by nvcc; its tests need a GPU
#     tidy, format   clang-tidy, clang-format
#     wide           checks that take long or download much; wide:NAME: one of tests/wide, wide-part: the next one
#     all            release asan tsan fuzz tidy cuda; after release in another order after each commit
# Every stage runs even if an earlier one failed. SATRAP_CI_LIMIT: minutes; a stage after release that would not fit is
# not started, and named. What failed, was FLAKY (failed once, then passed twice) or not run is said once more at the
# end, before the last line, which counts the tests of all stages; the exit status is 0 only if none failed, and at most
# two were FLAKY. tests/runner/README.md has the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

export SATRAP_RUN_STARTED=${SATRAP_RUN_STARTED:-$(date +%s)}
export GTEST_BRIEF=1  # of a suite, what failed alone
set_up=test
for stage in "$@"; do
  case $stage in
    release | quick | debug) ;;
    all | asan | tsan | fuzz | cuda | tidy | format | wide | wide-part) set_up=develop ;;
    wide:*)
      set_up=develop
      [ -f "tests/wide/${stage#wide:}.sh" ] || { echo "run.sh: there is no tests/wide/${stage#wide:}.sh" >&2; exit 2; }
      ;;
    *)
      sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
done

./launch/setup.sh "$set_up"
exec python3 tests/runner/main.py "$@"
