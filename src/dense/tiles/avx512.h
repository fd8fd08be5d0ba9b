#pragma once

#include <immintrin.h>

#include "src/dense/tiles/blocks.h"

namespace satrap::dense {
namespace {

/// What all kinds of CPU with AVX-512 share: 32 registers of 16 floats, and masks.
struct Avx512Registers {
  static constexpr std::int64_t kVector = 16;
  using Vector = float __attribute__((vector_size(kVector * sizeof(float))));
  static constexpr std::int64_t kTileRows[] = {14, 13, 8, 6};
  static constexpr std::int64_t kWidest = 4, kWidestOfStrips = 3;

  static __mmask16 first(std::int64_t count) {
    return static_cast<__mmask16>(count >= kVector ? 0xFFFF : count <= 0 ? 0 : (1 << count) - 1);
  }
  static Vector load_part(const float* p, std::int64_t count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static void store_part(float* p, std::int64_t count, Vector v) {
    _mm512_mask_storeu_ps(p, first(count), v);
  }
};

}  // namespace
}  // namespace satrap::dense
