#!/bin/bash
# Sets this machine up and runs every check of the project:
#   tests/run.sh [quick|release|debug|asan|tsan|fuzz|cuda|tidy|all]...   (all = release asan tsan fuzz tidy cuda, also
#                                                                         without an argument)
# A preset is built and its tests are run; tidy is clang-tidy; quick is the part of release that an uncommitted
# change needs. Every stage runs even if an earlier one failed. What failed is said once more at the end, before the
# last line, which counts the tests of all stages; the exit status is 0 only if none failed.
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${SATRAP_JOBS:-$(nproc)}
not_for_asan='^app\.(cache|command_line|config|early_stopping|formats|init|init_samples|job|kafka(_columns)?|labels'
not_for_asan+='|network|newcomer|parquet|prepare(_folder)?|progress|readme|report|store_(owners|runs)|stores|tensorboard)_test$'
not_for_asan+='|^process\.(adult|auto_device|checkpoint_format|cluster_faults|din|export|fp16|kafka|loaders|portable_bits'
not_for_asan+='|pytorch_parity|store_cluster|stores|strangers|torchscript)_test$'
# An eighth of the sources is compiled alone, another one after each commit (tests/architecture).
eighth=$(($(git rev-list --count HEAD 2> /dev/null || echo 0) % 8))
passed=0 failed=0 skipped=0
export GTEST_BRIEF=1  # of a suite, what failed alone
times=()
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT

count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# ThreadSanitizer of GCC 12 and 13 fails if the kernel randomises addresses by more than 28 bits.
without_aslr() {
  if setarch -R true 2> /dev/null; then setarch -R "$@"; else "$@"; fi
}

# The names of all modules, lowest layer first.
modules() {
  sed -n 's/^satrap_module(\([a-z]*\).*/\1/p' CMakeLists.txt
}

# select_quick: the C++ tests of the modules changed since the last commit (or by it) and of those that may depend on
# them, which are below them in CMakeLists.txt; the Python tests of the changed modules alone.
select_quick() {
  local files changed module labels=(architecture) others=() found=
  files=$(git diff --name-only HEAD && git ls-files --others --exclude-standard)
  [ -n "$files" ] || files=$(git diff --name-only HEAD~1)
  changed=" $(sed -nE 's#^(include/satrap|src|cuda|tests|bench)/([a-z]+)/.*#\2#p; s#^(python)/.*#\1#p' <<< "$files" |
    sort -u | tr '\n' ' ')"
  build=(--target satrap)
  for module in $(modules) launch python; do
    if [[ $changed = *" $module "* ]]; then found=1; else others+=("$module"); fi
    [ -n "$found" ] || continue
    labels+=("$module")
    [ ! -d "tests/$module" ] || ! compgen -G "tests/$module/*_test.cpp" > /dev/null || build+=("${module}_tests")
    [ "$module" != data ] || ! compgen -G ".venv/lib/python3*/site-packages/pyarrow" > /dev/null ||
      { labels+=(data_parquet); build+=(data_parquet_tests); }
    [ "$module" != data ] || [ ! -e /usr/include/librdkafka/rdkafka.h ] ||
      { labels+=(data_kafka loader_kafka); build+=(data_kafka_tests loader_kafka_tests); }
    [[ $module != @(backend|embedding) ]] || { labels+=(simt); build+=("${module}_simt_tests"); }
  done
  select=(-L "^($(IFS='|'; echo "${labels[*]}"))\$"
    -E "^architecture\\.(header|source)_tests|^backend_ptx|^ptx\\.|^($(IFS='|'; echo "${others[*]}"))\\.[a-z0-9_]+_test\$|mutants")
  echo "quick: ${changed:-no module}; tests of ${labels[*]}"
}

# can_fuzz: whether clang and its libraries for fuzzers are here.
can_fuzz() {
  local program
  program=$(mktemp) || return
  clang++-19 -x c++ -fsanitize=fuzzer,address,undefined -o "$program" - 2> /dev/null \
    <<< 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
  local status=$?
  rm -f "$program"
  return $status
}

# run_fuzz: the preset fuzz; without clang every fuzzer is skipped by name.
run_fuzz() {
  if can_fuzz; then
    run_preset fuzz
    return
  fi
  local fuzzers=(tests/fuzz/*_fuzz.cpp)
  for fuzzer in "${fuzzers[@]}"; do
    fuzzer=${fuzzer##*/}
    echo "SKIPPED fuzz.${fuzzer%_fuzz.cpp}: no clang++-19 with libFuzzer (libclang-rt-19-dev)"
  done
  count 0 0 ${#fuzzers[@]}
}

# run_preset NAME [quick]: configure, build, ctest, count.
run_preset() {
  local preset=$1 wrap=env junit="build/$1/junit.xml" status counts modules build=() select=() options=()
  local parallel=$((jobs + 2))
  [ "${2:-}" != quick ] || select_quick
  # With CUDA only what differs: the kernels, compiled by nvcc, their registers, their tests, libtorch's and NCCL.
  if [ "$preset" = cuda ]; then
    build=(--target backend_tests satrap_libtorch_cuda collective_tests)
    select=(-L '^(backend|collective)$' -E '^collective\.(FaultTest|Meeting|Ranks)')
  fi
  [ "$preset" != release ] || [ -n "${select[*]}" ] || select=(-E "^architecture\\.source_tests_[^$eighth]")
  # The sanitizers run the C++ tests of all modules with threads or memory of their own, and tsan builds no more. asan
  # also runs what whole programs do beyond them: signals, kills, full disks, resumed jobs, predictions and exports.
  case $preset in
    fuzz) parallel=$jobs ;;  # a fuzzer never waits
    asan) select=(-LE '^(launch|architecture|job|python)$' -E "$not_for_asan") ;;
    tsan)
      modules=$(modules | grep -vxE 'app|cli|job|kernels')
      build=(--target sanitizer_canary $(sed 's/$/_tests/' <<< "$modules"))
      select=(-L "^(sanitizers|$(paste -sd '|' <<< "$modules"))\$")
      ;;
  esac
  [ "$preset" != tsan ] || wrap=without_aslr
  # Clang compiles these in three quarters of GCC's time and its programs are faster; without it the machine's compiler.
  [[ $preset != @(asan|tsan) ]] || command -v clang++-19 > /dev/null || options=(-DCMAKE_CXX_COMPILER=c++)
  if ! { cmake --preset "$preset" "${options[@]}" > /dev/null &&
    $wrap cmake --build --preset "$preset" "${build[@]}" -j "$jobs" -- --quiet; }; then
    echo "$preset: does not build" | tee -a "$failures"
    count 0 1 0
    times+=("$preset build: $((SECONDS - started)) s")
    return
  fi
  times+=("$preset build: $((SECONDS - started)) s")
  started=$SECONDS
  rm -rf "$junit" "build/$preset/gtest"
  $wrap ctest --preset "$preset" "${select[@]}" -j "$parallel" --output-junit "$PWD/$junit" |
    grep -vE '^ +Start |  Passed |^$|\(Skipped\)$|^The following tests did not run'
  status=${PIPESTATUS[0]}
  counts=$(python3 tests/support/junit_counts.py "$junit" "build/$preset/gtest" "$status" "$failures") || counts="0 1 0"
  count $counts
  times+=("$preset tests: $((SECONDS - started)) s")
}

# Runs clang-tidy on every source of modules, programs, tests and benchmarks except those with torch's headers, which
# cost half a minute each. Several sources are checked together, since most of the time goes into headers that all of
# them include. The tests that compile every source and header alone would add nothing and are left out. Compiler
# warnings are left to the builds.
run_tidy() {
  .venv/bin/clang-tidy --version > /dev/null || return
  cmake --preset release -B build/tidy -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 > /dev/null || return
  sed -n 's/^  "file": "\(.*\)",\{0,1\}$/\1/p' build/tidy/compile_commands.json |
    grep '/Unity/' | grep -vE '/(satrap_libtorch|satrap_simt|satrap_test_support)\.dir/' | tr '\n' '\0' |
    xargs -0 -r -n 1 -P "$jobs" tests/support/tidy.sh
}

stages=()
for stage in "${@:-all}"; do
  case $stage in
    all) stages+=(release asan tsan fuzz tidy cuda) ;;
    quick | release | debug | asan | tsan | fuzz | cuda | tidy) stages+=("$stage") ;;
    *)
      echo "usage: tests/run.sh [quick|release|debug|asan|tsan|fuzz|cuda|tidy|all]..." >&2
      exit 2
      ;;
  esac
done

started=$SECONDS
./launch/setup.sh test || exit 1
times+=("setup: $((SECONDS - started)) s")

for stage in "${stages[@]}"; do
  echo "=== $stage"
  started=$SECONDS
  if [ "$stage" = tidy ]; then
    mkdir -p build
    run_tidy | tee build/tidy.log
    if [ "${PIPESTATUS[0]}" = 0 ]; then
      count 1 0 0
    else
      tail -n 30 build/tidy.log >> "$failures"
      count 0 1 0
    fi
    times+=("tidy: $((SECONDS - started)) s")
  elif [ "$stage" = quick ]; then
    run_preset release quick
  elif [ "$stage" = fuzz ]; then
    run_fuzz
  else
    run_preset "$stage"
  fi
done

echo "=== time"
printf '%s\n' "${times[@]}" "all: $SECONDS s"
if [ -s "$failures" ]; then
  echo "=== failed"
  cat "$failures"
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
