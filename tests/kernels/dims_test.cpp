#include "satrap/kernels/dims.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(PaddedDim, IsTheNextMultipleOfFour) {
  EXPECT_EQ(padded_dim(0), 0);
  EXPECT_EQ(padded_dim(1), 4);
  EXPECT_EQ(padded_dim(4), 4);
  EXPECT_EQ(padded_dim(5), 8);
  EXPECT_EQ(padded_dim(63), 64);
  static_assert(padded_dim(64) == 64);
}

/// What the function of with_dim is called with: "fixed 8", or "8".
std::string shape_of(std::int64_t dim) {
  return with_dim(dim, [](auto given) {
    const auto value = static_cast<std::int64_t>(given);
    if constexpr (std::is_same_v<decltype(given), std::int64_t>) {
      return std::to_string(value);
    } else {
      static_assert(decltype(given)::value == decltype(given){});
      return "fixed " + std::to_string(value);
    }
  });
}

TEST(WithDim, CommonWidthsAreKnownWhenCompiling) {
  for (const std::int64_t dim : {8, 16, 32, 64}) {
    EXPECT_EQ(shape_of(dim), "fixed " + std::to_string(dim));
  }
}

TEST(WithDim, EveryOtherWidthIsAPlainNumber) {
  for (std::int64_t dim = 0; dim <= 130; ++dim) {
    if (dim == 8 || dim == 16 || dim == 32 || dim == 64) continue;
    EXPECT_EQ(shape_of(dim), std::to_string(dim));
  }
}

TEST(WithDim, TheResultMayBeAReference) {
  std::int64_t seen = 0;
  std::int64_t& same = with_dim(16, [&](auto dim) -> std::int64_t& {
    seen = dim;
    return seen;
  });
  EXPECT_EQ(&same, &seen);
  EXPECT_EQ(seen, 16);
}

}  // namespace
}  // namespace satrap
