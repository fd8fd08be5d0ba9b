#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "src/dense/matrix.h"

namespace satrap::dense {

using Floats = std::vector<float>;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A row-major matrix of these values.
inline Matrix matrix(Floats& values, std::int64_t rows) {
  return {values.data(), rows, std::ssize(values) / rows};
}

inline ConstMatrix matrix(const Floats& values, std::int64_t rows) {
  return {values.data(), rows, std::ssize(values) / rows};
}

/// Small whole numbers, whose sums and products are exact.
inline Floats whole(std::mt19937_64& random, std::size_t size) {
  Floats values(size);
  for (float& v : values) v = static_cast<float>(random() % 9) - 4.0F;
  return values;
}

/// Derivatives by `input` of the sum of dy * forward(). Exact where that is a polynomial of degree
/// two in one element and the numbers are small and whole.
inline Floats derivatives(Floats& input, const std::function<Floats()>& forward, const Floats& dy) {
  Floats result;
  for (float& x : input) {
    const float before = x;
    x = before + 1.0F;
    const Floats above = forward();
    x = before - 1.0F;
    const Floats below = forward();
    x = before;
    float sum = 0.0F;
    for (std::size_t i = 0; i < dy.size(); ++i) sum += dy[i] * (above[i] - below[i]);
    result.push_back(sum / 2);
  }
  return result;
}

}  // namespace satrap::dense
