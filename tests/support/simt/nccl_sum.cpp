#include "tests/support/simt/nccl_sum.h"

#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace simt {
namespace {

template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
__half add(__half a, __half b) { return __float2half_rn(__half2float(a) + __half2float(b)); }
__nv_bfloat16 add(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
}

template <class T>
T element(std::span<const std::byte> array, std::size_t i) {
  T value;
  std::memcpy(&value, array.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
std::vector<std::byte> sum(std::span<const std::span<const std::byte>> parts,
                           std::size_t count,
                           std::uint64_t shift) {
  const std::size_t num_ranks = parts.size();
  std::vector<std::byte> sums(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = (i * num_ranks / count + shift) % num_ranks;
    T total = element<T>(parts[first], i);
    for (std::size_t step = 1; step < num_ranks; ++step) {
      total = add(total, element<T>(parts[(first + step) % num_ranks], i));
    }
    std::memcpy(sums.data() + i * sizeof(T), &total, sizeof(T));
  }
  return sums;
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
  }
  return 0;
}

std::string name_of(ncclDataType_t type) {
  constexpr const char* kNames[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                    "uint64", "float16", "float32", "float64", "bfloat16"};
  return size_of(type) == 0 ? "type " + std::to_string(type) : kNames[type];
}

std::vector<std::byte> ring_sum(std::span<const std::span<const std::byte>> parts,
                                std::size_t count,
                                ncclDataType_t type,
                                std::uint64_t shift) {
  switch (type) {  // signed sums wrap around as unsigned ones do
    case ncclInt8:
    case ncclUint8:
      return sum<std::uint8_t>(parts, count, shift);
    case ncclInt32:
    case ncclUint32:
      return sum<std::uint32_t>(parts, count, shift);
    case ncclInt64:
    case ncclUint64:
      return sum<std::uint64_t>(parts, count, shift);
    case ncclFloat16:
      return sum<__half>(parts, count, shift);
    case ncclBfloat16:
      return sum<__nv_bfloat16>(parts, count, shift);
    case ncclFloat32:
      return sum<float>(parts, count, shift);
    case ncclFloat64:
      return sum<double>(parts, count, shift);
  }
  return {};
}

}  // namespace simt
