#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "satrap/backend/row_layout.h"
#include "satrap/core/hash.h"

/// Four numbers at a time: 16 bytes as fp32, 8 bytes as bf16 or fp16.
namespace satrap::backend {

template <FloatType kType>
__device__ inline float to_float(std::uint32_t bits16) {
  if constexpr (kType == FloatType::kBFloat16) {
    return __uint_as_float(bits16 << 16);
  } else {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits16)));
  }
}

/// Rounded to the nearest even.
template <FloatType kType>
__device__ inline std::uint32_t to_bits16(float x) {
  if constexpr (kType == FloatType::kBFloat16) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  } else {
    return __half_as_ushort(__float2half_rn(x));
  }
}

/// Quad number `quad` of an array of numbers of the type.
template <FloatType kType>
__device__ inline float4 load_quad(const void* array, std::int64_t quad) {
  if constexpr (kType == FloatType::kFloat32) {
    return static_cast<const float4*>(array)[quad];
  } else {
    const uint2 x = static_cast<const uint2*>(array)[quad];
    return make_float4(to_float<kType>(x.x & 0xFFFFU), to_float<kType>(x.x >> 16),
                       to_float<kType>(x.y & 0xFFFFU), to_float<kType>(x.y >> 16));
  }
}

template <FloatType kType>
__device__ inline void store_quad(void* array, std::int64_t quad, float4 x) {
  if constexpr (kType == FloatType::kFloat32) {
    static_cast<float4*>(array)[quad] = x;
  } else {
    static_cast<uint2*>(array)[quad] =
        make_uint2(to_bits16<kType>(x.x) | to_bits16<kType>(x.y) << 16,
                   to_bits16<kType>(x.z) | to_bits16<kType>(x.w) << 16);
  }
}

/// For what happens once per row: the type is told at run time, which keeps the kernels few.
__device__ inline float4 load_quad(FloatType type, const void* array, std::int64_t quad) {
  switch (type) {
    case FloatType::kBFloat16:
      return load_quad<FloatType::kBFloat16>(array, quad);
    case FloatType::kFloat16:
      return load_quad<FloatType::kFloat16>(array, quad);
    default:
      return load_quad<FloatType::kFloat32>(array, quad);
  }
}
__device__ inline void store_quad(FloatType type, void* array, std::int64_t quad, float4 x) {
  switch (type) {
    case FloatType::kBFloat16:
      return store_quad<FloatType::kBFloat16>(array, quad, x);
    case FloatType::kFloat16:
      return store_quad<FloatType::kFloat16>(array, quad, x);
    default:
      return store_quad<FloatType::kFloat32>(array, quad, x);
  }
}

__device__ inline float4 fma_quad(float c, float4 x, float4 sum) {
  return make_float4(fmaf(c, x.x, sum.x), fmaf(c, x.y, sum.y), fmaf(c, x.z, sum.z),
                     fmaf(c, x.w, sum.w));
}
__device__ inline float4 add_quad(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/// x as bf16, up or down with probabilities that keep the mean; `random` is uniform in [0, 2^16).
__device__ inline std::uint32_t stochastic_bfloat16(float x, std::uint32_t random) {
  const std::uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7F800000U) == 0x7F800000U) return to_bits16<FloatType::kBFloat16>(x);
  const std::uint32_t rounded = bits + random;
  // Never to infinity: the largest finite number is as far as an update goes.
  return ((rounded & 0x7F800000U) == 0x7F800000U ? bits : rounded) >> 16;
}

/// x as fp16, likewise; 13 bits of `random` are used, the number of bits that are dropped.
__device__ inline std::uint32_t stochastic_half(float x, std::uint32_t random) {
  const std::uint32_t bits = __float_as_uint(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t draw = random & 0x1FFFU;
  if (magnitude >= 0x477FE000U) {  // 65504 and above: nothing to draw
    return magnitude > 0x7F800000U ? 0x7FFFU
                                   : sign | (magnitude == 0x7F800000U ? 0x7C00U : 0x7BFFU);
  }
  if (magnitude < 0x38800000U) {  // a subnormal: its spacing is fixed, 2^-24
    const float scaled = __uint_as_float(magnitude) * 0x1.0p24F;
    return sign | static_cast<std::uint32_t>(scaled + static_cast<float>(draw) * 0x1.0p-13F);
  }
  return sign | (((magnitude + draw) >> 13) - 0x1C000U);
}

/// As store_quad, each number rounded at random: by `random`, 16 bits for each.
__device__ inline void store_quad_stochastic(FloatType type,
                                             void* array,
                                             std::int64_t quad,
                                             float4 x,
                                             std::uint64_t random) {
  const auto draw = [random](int i) {
    return static_cast<std::uint32_t>(random >> (16 * i)) & 0xFFFFU;
  };
  if (type == FloatType::kBFloat16) {
    static_cast<uint2*>(array)[quad] =
        make_uint2(stochastic_bfloat16(x.x, draw(0)) | stochastic_bfloat16(x.y, draw(1)) << 16,
                   stochastic_bfloat16(x.z, draw(2)) | stochastic_bfloat16(x.w, draw(3)) << 16);
  } else if (type == FloatType::kFloat16) {
    static_cast<uint2*>(array)[quad] =
        make_uint2(stochastic_half(x.x, draw(0)) | stochastic_half(x.y, draw(1)) << 16,
                   stochastic_half(x.z, draw(2)) | stochastic_half(x.w, draw(3)) << 16);
  } else {
    store_quad<FloatType::kFloat32>(array, quad, x);
  }
}

}  // namespace satrap::backend
