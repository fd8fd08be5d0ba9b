#include "satrap/table/row_init.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap::table {
namespace {

/// Natural logarithm of a positive normal float: Cephes' polynomial on [sqrt(1/2), sqrt(2)).
float portable_log(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t offset = bits - 0x3F3504F3U;  // sqrt(1/2)
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  const float m = std::bit_cast<float>((offset & 0x007FFFFFU) + 0x3F3504F3U) - 1.0F;
  constexpr float kCoefficients[] = {7.0376836292E-2F,  -1.1514610310E-1F, 1.1676998740E-1F,
                                     -1.2420140846E-1F, 1.4249322787E-1F,  -1.6668057665E-1F,
                                     2.0000714765E-1F,  -2.4999993993E-1F, 3.3333331174E-1F};
  float p = 0.0F;
  for (const float c : kCoefficients) p = std::fma(p, m, c);
  const float square = m * m;
  float y = m * square * p;
  y = std::fma(exponent, -2.12194440E-4F, y);  // ln 2 = 0.693359375 - 2.12194440e-4
  y = std::fma(-0.5F, square, y);
  return std::fma(exponent, 0.693359375F, m + y);
}

}  // namespace

float normal_quantile(std::uint32_t n) {
  // u = (n + 0.5) / 2^24; x = 2u - 1 and (1 - x)(1 + x) = 4 u (1 - u), both without cancellation.
  const auto doubled = static_cast<std::int32_t>(2 * n + 1);
  const float x = static_cast<float>(doubled - (1 << 24)) * 0x1.0p-24F;
  const float low = static_cast<float>(doubled) * 0x1.0p-24F;
  const float high = static_cast<float>((1 << 25) - doubled) * 0x1.0p-24F;
  const float w = -portable_log(low * high);
  constexpr float kCentral[] = {2.81022636e-08F,  3.43273939e-07F, -3.5233877e-06F,
                                -4.39150654e-06F, 0.00021858087F,  -0.00125372503F,
                                -0.00417768164F,  0.246640727F,    1.50140941F};
  constexpr float kTail[] = {-0.000200214257F, 0.000100950558F, 0.00134934322F,
                             -0.00367342844F,  0.00573950773F,  -0.0076224613F,
                             0.00943887047F,   1.00167406F,     2.83297682F};
  const bool central = w < 5.0F;
  const float t = central ? w - 2.5F : std::sqrt(w) - 3.0F;
  float p = 0.0F;
  for (int i = 0; i < 9; ++i) p = std::fma(p, t, central ? kCentral[i] : kTail[i]);
  return p * x * 1.41421356F;
}

std::uint64_t RowInit::table_seed(std::uint64_t seed, std::string_view table_name) {
  return hash64(seed, hash_bytes(table_name));
}

void RowInit::fill(std::uint64_t table_seed, Key key, std::span<float> weights) const {
  const RandomStream stream{hash64(table_seed, mixed_id_of(key))};
  switch (type) {
    case InitType::kUniform:
      for (std::size_t d = 0; d < weights.size(); ++d) {
        weights[d] = std::fma(2.0F * scale, stream.uniform(d), -scale);
      }
      return;
    case InitType::kNormal:
      for (std::size_t d = 0; d < weights.size(); ++d) {
        weights[d] = scale * normal_quantile(static_cast<std::uint32_t>(stream.bits(d) >> 40));
      }
      return;
    case InitType::kConstant:
      std::fill(weights.begin(), weights.end(), scale);
      return;
  }
  SATRAP_CHECK(false, "row init type ", static_cast<int>(type));
}

}  // namespace satrap::table
