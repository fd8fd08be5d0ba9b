#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "satrap/core/ids.h"

namespace satrap::table {

/// Initial weights of a row: a pure function of the job's seed, the table's name and the id. It
/// uses only exact and correctly rounded operations, so hosts and devices get the same bits.
enum class InitType { kUniform, kNormal, kConstant };

/// Names in configurations, in the order of the enumerators.
inline constexpr const char* kInitNames[] = {"uniform", "normal", "constant"};
constexpr const char* name_of(InitType type) { return kInitNames[static_cast<int>(type)]; }

struct RowInit {
  InitType type = InitType::kUniform;
  float scale = 0.01F;  // uniform in [-scale, scale); standard deviation; or the constant

  /// Seed of a table, by its name: adding tables to a job changes no other table's rows.
  static std::uint64_t table_seed(std::uint64_t seed, std::string_view table_name);

  void fill(std::uint64_t table_seed, Key key, std::span<float> weights) const;  // [dim] out
};

/// Inverse of the standard normal distribution function at (n + 0.5) / 2^24, n in [0, 2^24): Giles,
/// "Approximating the erfinv function" (GPU Computing Gems 2, 2011), single precision, with a
/// logarithm that is also made of fused multiply-adds. Within 2e-6 relative or 5e-7 absolute.
float normal_quantile(std::uint32_t n);

}  // namespace satrap::table
