#!/bin/bash
# Runs everything that needs a GPU, from an unpacked bundle of bench/gpu_bundle.sh:
#   bench/gpu.sh OUT [PART...]    all parts in order, or these
#   bench/gpu.sh --list           the parts
# One start takes at most 8 minutes ($SATRAP_GPU_SECONDS) and leaves out the steps that earlier starts with the same OUT
# have done; start it again until nothing is left. No failure stops the rest: state.tsv has the result of every step.
# A step whose line is deleted from it is repeated.
# OUT gets at most eight files: state.tsv, checks.txt, reference.jsonl, ncu.txt, variants.jsonl, sweeps.jsonl,
# pytorch.json and table.md, which every start writes anew.
# Exit status: 0 nothing is left and nothing failed, 1 something failed or was cut off, 2 wrong usage, 3 start it again.
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
operations=(plan resolve pool_forward backward export)
parts=(facts tests trainer repeated memcheck synccheck racecheck initcheck reference ncu variants)
for operation in "${operations[@]}"; do parts+=("sweep_$operation"); done
parts+=(pytorch)

# ------------------------------------------------------------------------------ steps

# record STEP RESULT
record() {
  state[$1]=$2
  printf '%s\t%s\n' "$1" "$2" | tee -a "$out/state.tsv"
}

# run_step STEP LIMIT COMMAND...: unless an earlier start has done it. Sets $result, with the output in $scratch/output;
# returns 1 if there is none, because of an earlier one or because this start's time is up.
run_step() {
  local step=$1 limit=$2 left=$((seconds - SECONDS)) begin=$SECONDS status=0
  shift 2
  [[ -z ${state[$step]:-} ]] || return 1
  if ((left < 1)); then
    unfinished=1
    return 1
  fi
  timeout -k 5 "$((left < limit ? left : limit))" "$@" > "$scratch/output" 2>&1 < /dev/null || status=$?
  result=ok
  if ((status == 0)); then
    return 0
  elif ((status != 124 && status != 137)); then
    result="failed: exit status $status"
  elif ((SECONDS - begin >= limit)); then
    result="cut off after $limit s"
  elif ((SECONDS >= seconds)); then
    unfinished=1  # it has its whole time at the next start
    return 1
  else
    result="failed: killed"
  fi
}

# keep_output STEP [FILE]: at the end of FILE, with the result
keep_output() {
  { echo "== $1: $result"; cat "$scratch/output"; } >> "$out/${2:-checks.txt}"
  record "$1" "$result"
}

# test_step STEP LIMIT COMMAND...: runs tests; no test at all is a failure
test_step() {
  run_step "$1" "$2" "${@:3}" || return 0
  ! grep -q 'Running 0 tests' "$scratch/output" || result="failed: there is no such test"
  keep_output "$1"
}

# bench_step STEP FILE VARIANT PROGRAM FILTER: its JSON becomes a line at the end of FILE
bench_step() {
  rm -f "$scratch/json"
  run_step "$1" 120 "${own[@]}" "$4" "--benchmark_filter=$5" "--benchmark_context=variant=$3" \
    "--benchmark_out=$scratch/json" --benchmark_out_format=json || return 0
  if [[ -s $scratch/json ]]; then
    { tr -d '\n' < "$scratch/json"; echo; } >> "$out/$2"
    local why
    why=$(sed -n 's/.*"error_message": "\(.*\)",*$/\1/p' "$scratch/json" | head -n 1)
    [[ -z $why ]] || result="skipped: $why"
    [[ $why != "no GPU"* ]] || result="failed: $why"
  fi
  if [[ $result != ok ]]; then { echo "== $1: $result"; tail -n 20 "$scratch/output"; } >> "$out/checks.txt"; fi
  record "$1" "$result"
}

# not_run STEP REASON
not_run() { [[ -n ${state[$1]:-} ]] || record "$1" "NOT RUN: $2"; }

# ------------------------------------------------------------------------------ parts

part_facts() {
  run_step facts 60 bash -c '
    echo "bundle of commit $(cat "$1/commit") for: $(cat "$1/kind")"
    date -u; uname -srm; nproc
    nvidia-smi || echo "nvidia-smi: not installed"
    for tool in compute-sanitizer ncu nvcc; do command -v $tool || echo "$tool: not installed"; done' \
    facts "$root" || return 0
  keep_output facts
}

part_tests() {
  test_step tests:backend 420 "${own[@]}" "$root/bin/backend_tests" "--gtest_filter=$backend_filter"
  test_step tests:embedding 300 "${own[@]}" "$root/bin/embedding_tests" "--gtest_filter=$embedding_filter"
  # Networks need the libraries of PyTorch.
  test_step tests:dense 200 env "LD_LIBRARY_PATH=$root/lib:$torch" SATRAP_REQUIRE_GPU=1 "$root/bin/dense_tests" \
    '--gtest_filter=DeviceNetwork*'
  # A rank for each GPU.
  test_step tests:collective 100 env "LD_LIBRARY_PATH=$root/lib:$nccl" SATRAP_REQUIRE_GPU=1 \
    "$root/bin/collective_tests" '--gtest_filter=DeviceCommunicatorTest.*:Nccl.*'
}

part_repeated() {
  test_step repeated:backend 420 "${own[@]}" "$root/bin/backend_tests" "--gtest_filter=$backend_filter" \
    --gtest_repeat=3 --gtest_shuffle --gtest_brief=1
}

# Whole jobs: their bits are those of the CPU; then their rates.
part_trainer() {
  local what small=()
  [[ $(< "$root/kind") == gpu ]] || small=(--small)
  for what in same rates ranks peers; do
    run_step "trainer:$what" 420 "${own[@]}" "$python" "$root/bench/gpu_trainer.py" ${small[@]+"${small[@]}"} \
      "$what" "$root/bin/satrap" || continue
    keep_output "trainer:$what"
  done
}

# sanitize TOOL TEST...: every test is a step, so that one that is cut off does not hide the others
sanitize() {
  local tool=$1 test
  for test in "${@:2}"; do
    if command -v compute-sanitizer > /dev/null; then
      test_step "$tool:$test" 60 compute-sanitizer --tool "$tool" --target-processes all \
        --error-exitcode 9 "${own[@]}" "$root/bin/backend_tests" "--gtest_filter=$test"
    else
      not_run "$tool:$test" "compute-sanitizer is not installed"
    fi
  done
}
plan_tests=(DevicePlan.EqualsTheHostOnRandomBatches)
cache_tests=(DeviceResolve.EqualsTheHostOverManyBatches DeviceRows.GoOutAndComeBackInChunks)
warp_tests=(DevicePoolForward.EveryDim DeviceBackward.EveryOptimizerAndDim)  # they share memory and wait for each other
part_memcheck() { sanitize memcheck "${plan_tests[@]}" "${cache_tests[@]}" "${warp_tests[@]}"; }
part_synccheck() { sanitize synccheck "${cache_tests[@]}" "${warp_tests[@]}"; }
part_racecheck() { sanitize racecheck "${warp_tests[@]}"; }
part_initcheck() { sanitize initcheck "${plan_tests[@]}" "${cache_tests[@]}" "${warp_tests[@]}"; }

# Programs of older commits lack the last axes.
reference='/dim:64/w:0/opt:1/zipf:0/pool:5/hit:100/load:90(/cache:0/fetch:0/graph:0)?/iterations'

part_reference() {
  local operation
  for operation in "${operations[@]}"; do
    bench_step "reference:$operation" reference.jsonl new "$root/bin/backend_${operation}_bench" "$reference"
  done
}

part_ncu() {
  local pair operation kernel
  for pair in plan:number_keys resolve:probe_keys resolve:resolve_sets pool_forward:pool_rows \
    backward:reduce_segments export:move_rows; do
    operation=${pair%:*} kernel=${pair#*:}
    if command -v ncu > /dev/null; then
      run_step "ncu:$kernel" 120 env SATRAP_BENCH_TURNS=2 ncu --target-processes all --clock-control none \
        --kernel-name "regex:$kernel" --launch-skip 4 --launch-count 1 --section SpeedOfLight \
        --section MemoryWorkloadAnalysis --section Occupancy --section WarpStateStats \
        "${own[@]}" "$root/bin/backend_${operation}_bench" "--benchmark_filter=$reference" || continue
      ! grep -qE '==ERROR==|No kernels were profiled' "$scratch/output" || result="failed: see ncu.txt"
      keep_output "ncu:$kernel" ncu.txt
    else
      not_run "ncu:$kernel" "ncu is not installed"
    fi
  done
}

# Old and new take turns, so that a change of the machine's clocks hits both.
part_variants() {
  local round operation folder
  [[ -d $root/variants ]] || not_run variants "the bundle has no variants"
  for round in 1 2 3 4 5; do
    for operation in "${operations[@]}"; do
      for folder in "$root"/variants/* "$root/bin"; do
        [[ -d $root/variants && -x $folder/backend_${operation}_bench ]] || continue
        local variant=${folder##*/}
        [[ $folder != "$root/bin" ]] || variant=new
        bench_step "variants:$operation:$round:$variant" variants.jsonl "$variant" \
          "$folder/backend_${operation}_bench" "$reference"
      done
    done
  done
}

# A process for each case: a kernel that fails takes no other case with it.
sweep() {
  local program=$root/bin/backend_$1_bench case
  if ! timeout 60 "${own[@]}" "$program" --benchmark_list_tests > "$scratch/cases" 2> /dev/null; then
    [[ -n ${state[sweep:$1]:-} ]] || record "sweep:$1" "failed: $program lists no cases"
    return
  fi
  while read -r case; do
    [[ $case =~ $reference ]] || bench_step "sweep:$case" sweeps.jsonl new "$program" "^$case\$"
  done < "$scratch/cases"
}

part_pytorch() {
  local why
  local sees_a_gpu='import sys, torch; sys.exit(None if torch.cuda.is_available() else "PyTorch sees no GPU")'
  if why=$("$python" -c "$sees_a_gpu" 2>&1); then
    run_step pytorch 300 "$python" "$root/bench/backend/pytorch_reference.py" "$out/pytorch.json" || return 0
    keep_output pytorch
  else
    not_run pytorch "$(tail -n 1 <<< "$why")"
  fi
}

# ------------------------------------------------------------------------------ start

usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
}

[[ $# -ge 1 ]] || usage
if [[ $1 == --list ]]; then
  printf '%s\n' "${parts[@]}"
  exit
fi
[[ $1 != -* ]] || usage
chosen=("${@:2}")
for part in "${chosen[@]}"; do
  [[ " ${parts[*]} " == *" $part "* ]] || { echo "there is no part '$part'; see --list" >&2; exit 2; }
done
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${parts[@]}")
[[ -f $root/kind ]] || { echo "$root is no bundle: bench/gpu_bundle.sh makes one" >&2; exit 2; }

mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH=$PATH:/usr/local/cuda/bin
python=${SATRAP_PYTHON:-python3}
seconds=${SATRAP_GPU_SECONDS:-480}
unfinished=0
own=(env "LD_LIBRARY_PATH=$root/lib" SATRAP_REQUIRE_GPU=1)
torch=$("$python" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.origin[:-11] + 'lib' if s else '')" || true)
nccl=$("$python" -c "import importlib.util as u; s = u.find_spec('nvidia.nccl'); print(list(s.submodule_search_locations)[0] + '/lib' if s else '')" \
  2> /dev/null || true)
# The bundle's C++ runtime is for machines with an older one; it may need a newer glibc than theirs.
"${own[@]}" "$root/bin/backend_plan_bench" --benchmark_list_tests > /dev/null 2>&1 \
  || own+=("LD_LIBRARY_PATH=$root/lib:$root/lib/runtime")
backend_filter='*' embedding_filter='*Group*'
if [[ $(< "$root/kind") != gpu ]]; then  # slow, and without times: the smallest load and a few tests
  [[ ! -d $root/ptx ]] || own+=("SATRAP_PTX_FOLDER=$root/ptx")
  own+=("SATRAP_BENCH_ROWS=${SATRAP_BENCH_ROWS:-1}" "SATRAP_BENCH_TURNS=${SATRAP_BENCH_TURNS:-2}")
  backend_filter='DevicePlan.TwoBags*:DeviceResolve.WhatCameIn*:DevicePoolForward.SumsTheRows*:DeviceRows.GoOut*'
  embedding_filter='GroupBatch.*'
fi
declare -A state
# What an earlier start, now killed, has left running holds the lock too: measurements have the GPU to themselves.
exec 9>> "$out/state.tsv"
flock -w 130 9 || { echo "another start still runs" >&2; exit 3; }
while IFS=$'\t' read -r step result; do state[$step]=$result; done < "$out/state.tsv"

for part in "${chosen[@]}"; do
  case $part in
    sweep_*) sweep "${part#sweep_}" ;;
    *) "part_$part" ;;
  esac
done

"$python" "$root/bench/backend/table.py" "$out" > "$scratch/table" && cp "$scratch/table" "$out/table.md" \
  || { echo "no table.md: bench/backend/table.py failed" >&2; unfinished=1; }
if ((unfinished)); then
  echo "not everything is done: start it again" >&2
  exit 3
fi
! grep -qE $'\t(failed|cut off)' "$out/state.tsv"
