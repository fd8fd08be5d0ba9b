#include <gtest/gtest.h>

#include "src/dense/ops.h"
#include "tests/dense/exact_derivatives.h"

namespace satrap::dense {
namespace {

Floats interaction(Floats& first, Floats& rest, std::int64_t rows, std::int64_t width) {
  const std::int64_t n = (std::ssize(first) + std::ssize(rest)) / rows / width;
  Floats work(static_cast<std::size_t>(dot_interaction_work(n, width)));
  Floats out(static_cast<std::size_t>(rows * n * (n - 1) / 2), kNan);
  dot_interaction(matrix(first, rows), matrix(rest, rows), width, work.data(), matrix(out, rows));
  return out;
}

TEST(DotInteractionOps, InteractionIsTheDotProductsBelowTheDiagonal) {
  Floats first = {1, 2}, rest = {3, 4, 5, 6}, none;
  EXPECT_EQ(interaction(first, rest, 1, 2), (Floats{11, 17, 39}));
  EXPECT_EQ(interaction(none, rest, 1, 2), Floats{39});
}

TEST(DotInteractionOps, OfAnySizeItIsTheDefinition) {
  std::mt19937_64 random(2);
  for (const std::int64_t width : {1, 15, 16, 17, 32}) {
    for (const std::int64_t fields : {1, 15, 16, 17, 26, 33}) {
      constexpr std::int64_t kRows = 3;
      Floats first = whole(random, static_cast<std::size_t>(kRows * width));
      Floats rest = whole(random, static_cast<std::size_t>(kRows * fields * width));
      Floats expected;
      for (std::int64_t r = 0; r < kRows; ++r) {
        const auto vector = [&](std::int64_t i) {
          return i == 0 ? first.data() + r * width : rest.data() + (r * fields + i - 1) * width;
        };
        for (std::int64_t i = 1; i <= fields; ++i) {
          for (std::int64_t j = 0; j < i; ++j) {
            float sum = 0.0F;
            for (std::int64_t k = 0; k < width; ++k) sum += vector(i)[k] * vector(j)[k];
            expected.push_back(sum);
          }
        }
      }
      EXPECT_EQ(interaction(first, rest, kRows, width), expected) << fields << " of " << width;
    }
  }
}

TEST(DotInteractionOps, GradientsOfTheInteraction) {
  std::mt19937_64 random(1);
  for (const std::int64_t width : {1, 3, 16, 21}) {
    for (const std::int64_t fields : {1, 2, 7, 18}) {
      constexpr std::int64_t kRows = 2;
      const std::int64_t n = fields + 1;
      Floats first = whole(random, static_cast<std::size_t>(kRows * width));
      Floats rest = whole(random, static_cast<std::size_t>(kRows * fields * width));
      Floats dout = whole(random, static_cast<std::size_t>(kRows * n * (n - 1) / 2));
      Floats dfirst(first.size(), 1.0F), drest(rest.size(), kNan);
      Floats work(static_cast<std::size_t>(dot_interaction_work(n, width)));
      dot_interaction_backward(matrix(first, kRows), matrix(rest, kRows), width,
                               matrix(dout, kRows), work.data(), matrix(dfirst, kRows),
                               matrix(drest, kRows));
      const auto forward = [&] { return interaction(first, rest, kRows, width); };
      Floats expected = derivatives(first, forward, dout);
      for (float& d : expected) d += 1.0F;  // that of `first` is added
      EXPECT_EQ(dfirst, expected);
      EXPECT_EQ(drest, derivatives(rest, forward, dout));
    }
  }
}

}  // namespace
}  // namespace satrap::dense
