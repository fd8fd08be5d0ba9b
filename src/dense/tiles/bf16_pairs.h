#pragma once

#include "src/dense/tiles/avx512.h"

namespace satrap::dense {
namespace {

// Two numbers of bf16 that follow each other in the depth, in the bits of a float. A number is
// rounded to the nearest, ties to even. Numbers of which there are none are 0.

/// The first `count` of 32 numbers that are side by side, as 16 pairs.
__attribute__((always_inline)) inline __m512 pairs_along_depth(const float* from,
                                                               std::int64_t count) {
  const __m512 low = _mm512_maskz_loadu_ps(Avx512Registers::first(count), from);
  const __m512 high = _mm512_maskz_loadu_ps(Avx512Registers::first(count - 16), from + 16);
  return reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(high, low));
}

/// 16 pairs of one number of each row, the first `count` of them; `odd` may be null.
__attribute__((always_inline)) inline __m512 pairs_across_depth(const float* even,
                                                                const float* odd,
                                                                std::int64_t count) {
  const __mmask16 mask = Avx512Registers::first(count);
  const auto widened = [mask](const float* from) {
    return _mm512_maskz_cvtepu16_epi32(mask, reinterpret_cast<__m256i>(_mm512_maskz_cvtneps_pbh(
                                                 mask, _mm512_maskz_loadu_ps(mask, from))));
  };
  __m512i pairs = widened(even);
  if (odd != nullptr) pairs |= _mm512_maskz_slli_epi32(mask, widened(odd), 16);
  return reinterpret_cast<__m512>(pairs);
}

}  // namespace
}  // namespace satrap::dense
