#!/bin/bash
# Packs what bench/gpu.sh needs on a machine with a GPU, where nothing is installed or built:
#   bench/gpu_bundle.sh [--interpreter | --executor] [--build DIR] [--variant NAME=DIR]... [OUT]
# OUT is build/gpu_bundle.tar.gz if it is not given.
# Programs come from a build for the GPU (build/cuda), with the libraries they need beyond glibc and the driver:
#   cmake --preset cuda -DSATRAP_MARCH=x86-64-v3 -DCMAKE_CUDA_ARCHITECTURES=90-real
#   cmake --build --preset cuda --target satrap satrap-ps backend_tests embedding_tests dense_tests \
#     collective_tests trainer_step_bench backend_{plan,resolve,pool_forward,backward,export}_bench
# --interpreter, --executor: from build/release, to try the scripts where there is no GPU. Kernels run on the
# interpreter of PTX, in a build that found nvcc, or on the executor, as those of whole jobs always do.
# --variant: the benchmarks of another build, of an older commit, which gpu.sh compares with these back to back.
# Checks that the bundle has at most 48 MiB and that every program starts from it in an empty environment.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
operations=(plan resolve pool_forward backward export)
max_bytes=$((48 << 20))

kind=gpu build='' out=$source/build/gpu_bundle.tar.gz variants=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --interpreter | --executor) kind=${1#--} ;;
    --build) build=$2; shift ;;
    --variant) variants+=("$2"); shift ;;
    -*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
    *) out=$1 ;;
  esac
  shift
done
if [[ $kind == gpu ]]; then
  build=${build:-$source/build/cuda} bench_suffix='' backend_tests=backend_tests embedding_tests=embedding_tests
  dense_tests=dense_tests collective_tests=collective_tests
  satrap=bin/satrap
  for folder in "$build" "${variants[@]#*=}"; do
    ! grep -q '^SATRAP_MARCH:.*=native$' "$folder/CMakeCache.txt" \
      || { echo "$folder is for this machine's CPU: configure it with -DSATRAP_MARCH=x86-64-v3" >&2; exit 1; }
  done
else
  build=${build:-$source/build/release} bench_suffix=_executor
  backend_tests=backend_simt_tests embedding_tests=embedding_simt_tests dense_tests=dense_simt_tests
  collective_tests=collective_simt_tests satrap=simt/satrap
  [[ $kind == executor ]] || backend_tests=backend_ptx_tests
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bundle=$folder/bundle
mkdir -p "$bundle"/{bin,lib/runtime,bench/backend}

# take PROGRAM TO: a copy of the program without debug information, and its libraries. The interpreter needs symbols.
take() {
  strip -g -o "$2" "$1"
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' \
    | grep -vE '/(libc|libm|libdl|librt|libpthread|libcuda)\.so' | xargs -r cp -n --dereference -t "$bundle/lib"
}

programs() { find bin $(ls -d variants 2> /dev/null) -type f | sort; }

take "$build/$satrap" "$bundle/bin/satrap"
take "$build/bin/satrap-ps" "$bundle/bin/satrap-ps"
for library in "$build"/lib/libsatrap_libtorch*.so; do  # what they need is PyTorch's, which gpu_trainer.py looks for
  strip -g -o "$bundle/lib/$(basename "$library")" "$library"
done
take "$build/tests/$backend_tests" "$bundle/bin/backend_tests"
take "$build/tests/$embedding_tests" "$bundle/bin/embedding_tests"
take "$build/tests/$dense_tests" "$bundle/bin/dense_tests"
take "$build/tests/$collective_tests" "$bundle/bin/collective_tests"
take "$build/bench/trainer_step_bench" "$bundle/bin/trainer_step_bench"
for operation in "${operations[@]}"; do
  take "$build/bench/backend_${operation}_bench$bench_suffix" "$bundle/bin/backend_${operation}_bench"
done
for variant in ${variants[@]+"${variants[@]}"}; do
  mkdir -p "$bundle/variants/${variant%%=*}"
  for operation in "${operations[@]}"; do
    take "${variant#*=}/bench/backend_${operation}_bench$bench_suffix" \
      "$bundle/variants/${variant%%=*}/backend_${operation}_bench"
  done
done
mv "$bundle"/lib/lib{stdc++,gcc_s}.so.* "$bundle/lib/runtime"
cp "$source"/bench/gpu{.sh,_trainer.py} "$bundle/bench"
mkdir "$bundle/launch"
cp -r "$source"/launch/satrap{-run,_run} "$bundle/launch"
rm -rf "$bundle/launch/satrap_run/__pycache__"
cp "$source"/bench/backend/{table,pytorch_reference,pytorch_trainer}.py "$bundle/bench/backend"
git -C "$source" describe --always --dirty > "$bundle/commit" 2> /dev/null || echo unknown > "$bundle/commit"
echo "$kind" > "$bundle/kind"
if [[ $kind == interpreter ]]; then
  mkdir "$bundle/ptx"
  cp "$build"/tests/support/ptx/backend/*.ptx "$bundle/ptx"
fi

mkdir -p "$(dirname "$out")"
tar -C "$bundle" -czf "$out" .
bytes=$(stat -c %s "$out")
((bytes <= max_bytes)) || { echo "$out has $bytes bytes, more than $max_bytes" >&2; exit 1; }

mkdir "$folder/unpacked"
tar -C "$folder/unpacked" -xzf "$out"
cd "$folder/unpacked"
for program in $(programs); do
  list=--benchmark_list_tests
  [[ $program != *_tests ]] || list=--gtest_list_tests
  [[ $program != */@(satrap|satrap-ps|trainer_step_bench) ]] || list=--help
  env -i LD_LIBRARY_PATH=lib:lib/runtime "$program" "$list" > "$folder/listed"
  [[ -s $folder/listed ]] || { echo "$program lists nothing" >&2; exit 1; }
done
glibc=$(programs | xargs objdump -T lib/*.so.* | grep -o 'GLIBC_2[.0-9]*' | sort -Vu | tail -n 1)
echo "$out: $bytes bytes, $(programs | wc -l) programs for: $kind; needs $glibc"
