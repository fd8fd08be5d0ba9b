#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "satrap/core/half.h"
#include "satrap/core/hash.h"
#include "satrap/kernels/row_layout.h"

/// Four numbers at a time: 16 bytes as fp32, 8 bytes as bf16 or fp16.
namespace satrap::backend {

template <FloatType kType>
__device__ inline float to_float(std::uint32_t bits16) {
  if constexpr (kType == FloatType::kBf16) {
    return __uint_as_float(bits16 << 16);
  } else {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits16)));
  }
}

/// Rounds to nearest, ties to even.
template <FloatType kType>
__device__ inline std::uint32_t to_bits16(float x) {
  if constexpr (kType == FloatType::kBf16) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  } else {
    return __half_as_ushort(__float2half_rn(x));
  }
}

/// A quad as it is stored.
template <FloatType kType>
using StoredQuad = std::conditional_t<kType == FloatType::kFp32, float4, uint2>;

template <FloatType kType>
__device__ inline float4 to_float4(StoredQuad<kType> x) {
  if constexpr (kType == FloatType::kFp32) {
    return x;
  } else {
    return make_float4(to_float<kType>(x.x & 0xFFFFU), to_float<kType>(x.x >> 16),
                       to_float<kType>(x.y & 0xFFFFU), to_float<kType>(x.y >> 16));
  }
}

/// Quad number `quad` of an array of numbers of the type.
template <FloatType kType>
__device__ inline float4 load_quad(const void* array, std::int64_t quad) {
  return to_float4<kType>(static_cast<const StoredQuad<kType>*>(array)[quad]);
}

template <FloatType kType>
__device__ inline void store_quad(void* array, std::int64_t quad, float4 x) {
  if constexpr (kType == FloatType::kFp32) {
    static_cast<float4*>(array)[quad] = x;
  } else {
    static_cast<uint2*>(array)[quad] =
        make_uint2(to_bits16<kType>(x.x) | to_bits16<kType>(x.y) << 16,
                   to_bits16<kType>(x.z) | to_bits16<kType>(x.w) << 16);
  }
}

/// For uses once per row: the type is a run-time argument, which keeps the number of kernels small.
__device__ inline float4 load_quad(FloatType type, const void* array, std::int64_t quad) {
  if (type == FloatType::kFp32) return load_quad<FloatType::kFp32>(array, quad);
  return type == FloatType::kBf16 ? load_quad<FloatType::kBf16>(array, quad)
                                  : load_quad<FloatType::kFp16>(array, quad);
}
__device__ inline void store_quad(FloatType type, void* array, std::int64_t quad, float4 x) {
  if (type == FloatType::kFp32) return store_quad<FloatType::kFp32>(array, quad, x);
  return type == FloatType::kBf16 ? store_quad<FloatType::kBf16>(array, quad, x)
                                  : store_quad<FloatType::kFp16>(array, quad, x);
}

/// A factor that leaves every sum as it is, whatever its sign, if the number it multiplies is +0.
inline constexpr float kNoFactor = -0.0F;

__device__ inline float4 fma_quad(float c, float4 x, float4 sum) {
  return make_float4(fmaf(c, x.x, sum.x), fmaf(c, x.y, sum.y), fmaf(c, x.z, sum.z),
                     fmaf(c, x.w, sum.w));
}
__device__ inline float4 add_quad(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

template <class Half>
__device__ inline std::uint32_t stochastic_bits(float x, std::uint64_t random, int element) {
  Half half{};
  round_stochastically(x, rounding_bits(random, element), half);
  return half.bits;
}
template <class Half>
__device__ inline void store_quad_stochastic(void* array,
                                             std::int64_t quad,
                                             float4 x,
                                             const RandomStream& random) {
  const std::uint64_t bits = random.bits(static_cast<std::uint64_t>(quad));
  static_cast<uint2*>(array)[quad] =
      make_uint2(stochastic_bits<Half>(x.x, bits, 0) | stochastic_bits<Half>(x.y, bits, 1) << 16,
                 stochastic_bits<Half>(x.z, bits, 2) | stochastic_bits<Half>(x.w, bits, 3) << 16);
}
/// As store_quad; 16-bit numbers are rounded stochastically, by 16 bits of number `quad` of
/// `random` each.
__device__ inline void store_quad_stochastic(FloatType type,
                                             void* array,
                                             std::int64_t quad,
                                             float4 x,
                                             const RandomStream& random) {
  if (type == FloatType::kFp32) return store_quad<FloatType::kFp32>(array, quad, x);
  return type == FloatType::kBf16 ? store_quad_stochastic<Bf16>(array, quad, x, random)
                                  : store_quad_stochastic<Fp16>(array, quad, x, random);
}

}  // namespace satrap::backend
