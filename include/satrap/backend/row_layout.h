#pragma once

#include <cstdint>

#include "satrap/kernels/row_optimizer.h"

namespace satrap::backend {

/// How a number is stored. Arithmetic is always fp32.
enum class FloatType : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

constexpr std::int64_t bytes_of(FloatType type) { return type == FloatType::kFloat32 ? 4 : 2; }

/// A row in a device cache: [weights: padded_dim][optimizer state, fp32], the state at a multiple
/// of 16 bytes, rows at a multiple of 32 bytes (a sector of memory). Weights and state of a dim
/// that is no multiple of 4 are padded with zeros up to one: whole vectors are loaded.
struct RowLayout {
  static constexpr std::int64_t kMaxDim = 1024;

  std::int64_t dim = 0;         // weights that count
  std::int64_t padded_dim = 0;  // dim up to a multiple of 4
  std::int64_t state_offset_bytes = 0;
  std::int64_t state_floats = 0;  // per row, padded: [n], or [m][v] and [z][n] of padded_dim each
  std::int64_t stride_bytes = 0;
  FloatType weight_type = FloatType::kFloat32;

  /// Throws Error(kInvalidConfig) unless 1 <= dim <= kMaxDim.
  static RowLayout of(std::int64_t dim, FloatType weight_type, const RowOptimizer& optimizer);
};

}  // namespace satrap::backend
