#pragma once

#include <cmath>
#include <cstdint>

namespace satrap::dense {

/// Sixteen floats that the compiler keeps in vector registers. Sums over its elements have a fixed
/// order; the compiler may not vectorise a plain loop that sums floats.
inline constexpr std::int64_t kSimdFloats = 16;
using Simd = float __attribute__((vector_size(64), may_alias));

/// Simd anywhere in memory. A vector type that is itself aligned to 4 would do for GCC; clang
/// assumes that arrays of it are aligned to 64.
struct __attribute__((packed, may_alias)) SimdInMemory {
  Simd value;
};

// With narrower registers only these inline functions pass Simd, so its ABI does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

inline Simd load(const float* p) { return reinterpret_cast<const SimdInMemory*>(p)->value; }
inline void store(float* p, Simd v) { reinterpret_cast<SimdInMemory*>(p)->value = v; }

inline float sum(const Simd& v) {
  float a[kSimdFloats];
  store(a, v);
  for (std::int64_t step = kSimdFloats / 2; step > 0; step /= 2) {
    for (std::int64_t l = 0; l < step; ++l) a[l] += a[l + step];
  }
  return a[0];
}

inline float dot(const float* a, const float* b, std::int64_t n) {
  Simd acc0{}, acc1{};
  std::int64_t i = 0;
  for (; i + 2 * kSimdFloats <= n; i += 2 * kSimdFloats) {
    acc0 += load(a + i) * load(b + i);
    acc1 += load(a + i + kSimdFloats) * load(b + i + kSimdFloats);
  }
  float total = sum(acc0 + acc1);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

inline float sum(const float* a, std::int64_t n) {
  Simd acc{};
  std::int64_t i = 0;
  for (; i + kSimdFloats <= n; i += kSimdFloats) acc += load(a + i);
  float total = sum(acc);
  for (; i < n; ++i) total += a[i];
  return total;
}

}  // namespace satrap::dense
