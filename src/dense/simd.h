#pragma once

#include <cmath>
#include <cstdint>

namespace satrap::dense {

inline constexpr std::int64_t kSimdFloats = 16;

// Floats of one vector register: GCC keeps a wider vector type in memory.
#if defined(__AVX512F__)
inline constexpr std::int64_t kPartFloats = 16;
#elif defined(__AVX__)
inline constexpr std::int64_t kPartFloats = 8;
#else
inline constexpr std::int64_t kPartFloats = 4;
#endif
using SimdPart = float __attribute__((vector_size(kPartFloats * sizeof(float)), may_alias));

/// Sixteen floats that the compiler keeps in vector registers. Sums over its elements have a fixed
/// order; the compiler may not vectorise a plain loop that sums floats.
struct Simd {
  static constexpr std::int64_t kParts = kSimdFloats / kPartFloats;
  SimdPart parts[kParts];

  float operator[](std::int64_t l) const { return parts[l / kPartFloats][l % kPartFloats]; }
};

/// `result` has in each part what `operation` makes of the parts of a and b.
template <class Operation>
inline Simd by_parts(const Simd& a, const Simd& b, Operation operation) {
  Simd result;
  for (std::int64_t p = 0; p < Simd::kParts; ++p) {
    result.parts[p] = operation(a.parts[p], b.parts[p]);
  }
  return result;
}

inline Simd operator+(const Simd& a, const Simd& b) {
  return by_parts(a, b, [](const SimdPart& x, const SimdPart& y) { return x + y; });
}
inline Simd operator-(const Simd& a, const Simd& b) {
  return by_parts(a, b, [](const SimdPart& x, const SimdPart& y) { return x - y; });
}
inline Simd operator*(const Simd& a, const Simd& b) {
  return by_parts(a, b, [](const SimdPart& x, const SimdPart& y) { return x * y; });
}
inline Simd operator*(float a, const Simd& b) {
  return by_parts(b, b, [a](const SimdPart& x, const SimdPart&) { return a * x; });
}
inline Simd& operator+=(Simd& a, const Simd& b) { return a = a + b; }

/// A part anywhere in memory. A vector type that is itself aligned to 4 would do for GCC; clang
/// assumes that arrays of it are aligned to 64.
struct __attribute__((packed, may_alias)) PartInMemory {
  SimdPart value;
};

inline SimdPart load_part(const float* p) {
  return reinterpret_cast<const PartInMemory*>(p)->value;
}
inline void store_part(float* p, const SimdPart& v) {
  reinterpret_cast<PartInMemory*>(p)->value = v;
}

inline Simd load(const float* p) {
  Simd v;
  for (std::int64_t i = 0; i < Simd::kParts; ++i) v.parts[i] = load_part(p + i * kPartFloats);
  return v;
}
inline void store(float* p, const Simd& v) {
  for (std::int64_t i = 0; i < Simd::kParts; ++i) store_part(p + i * kPartFloats, v.parts[i]);
}

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
