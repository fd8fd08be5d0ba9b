// A layer computes the same from two matrices side by side as from their copy in one.

#include "src/dense/joined.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "src/dense/aligned_buffer.h"
#include "src/dense/heads.h"

namespace satrap::dense::joined_test {
namespace {

constexpr std::int64_t kRows = 37, kLeft = 19, kRight = 5, kIn = kLeft + kRight;

struct Computed {
  std::vector<float> logits, gradients, dleft, dright;
};

std::vector<float> values_of(ConstMatrix m) {
  std::vector<float> values;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    values.insert(values.end(), m.row(r), m.row(r) + m.cols);
  }
  return values;
}

struct TopCase {
  std::vector<std::int64_t> widths;
  Output output;
};

/// Two passes; the second's gradients are added to the first's.
Computed compute(const TopCase& c, bool split, bool right_wanted) {
  Layout layout;
  const ScratchId logits_id = layout.add_scratch(c.output.num_labels);
  const Top top(layout, "top", kIn, c.widths, c.output, {});
  const AlignedBuffer parameters(layout.num_parameters()), x(kRows * kIn), dx(kRows * kIn);
  layout.initialize(5, parameters.span(), {});
  for (std::uint64_t i = 0; i < kRows * kIn; ++i) {
    x.data()[i] = 2 * RandomStream{3}.uniform(i) - 1;
  }
  const Matrix whole(x.data(), kRows, kIn), dwhole(dx.data(), kRows, kIn);
  const std::vector<float> left = values_of(whole.columns(0, kLeft));
  const ConstMatrix left_alone(left.data(), kRows, kLeft);
  const ConstJoined input =
      split ? ConstJoined(left_alone, whole.columns(kLeft, kRight)) : ConstJoined(whole);
  const Matrix dright = right_wanted ? dwhole.columns(kLeft, kRight) : Matrix();
  const Joined dinput = split ? Joined(dwhole.columns(0, kLeft), dright) : Joined(dwhole);

  Pass pass(layout, parameters.data(), nullptr, kRows, Precision::kFp32);
  Computed result;
  for (const bool accumulate : {false, true}) {
    pass.begin({.num_examples = kRows, .training = true, .accumulate = accumulate});
    const Matrix logits = pass.scratch(logits_id);
    top.forward(pass, input, logits);
    result.logits = values_of(logits);
    top.backward(pass, input, logits, dinput);
  }
  result.gradients.assign(pass.gradients().data(),
                          pass.gradients().data() + layout.num_parameters());
  result.dleft = values_of(dwhole.columns(0, kLeft));
  result.dright = values_of(dwhole.columns(kLeft, kRight));
  return result;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << what << " " << i;
  }
}

class JoinedInput : public testing::TestWithParam<TopCase> {};

TEST_P(JoinedInput, GivesWhatItsCopyInOneMatrixGives) {
  const Computed expected = compute(GetParam(), false, true);
  const Computed computed = compute(GetParam(), true, true);
  expect_near(computed.logits, expected.logits, "logits");
  expect_near(computed.gradients, expected.gradients, "gradients");
  expect_near(computed.dleft, expected.dleft, "dx, left");
  expect_near(computed.dright, expected.dright, "dx, right");
}

TEST_P(JoinedInput, LeavesOutTheGradientThatNobodyWants) {
  const Computed expected = compute(GetParam(), true, true);
  const Computed computed = compute(GetParam(), true, false);
  EXPECT_EQ(computed.gradients, expected.gradients);
  EXPECT_EQ(computed.dleft, expected.dleft);
  EXPECT_EQ(computed.dright, std::vector<float>(kRows * kRight, 0.0F));
}

const job::HeadsConfig kPle{.type = job::HeadsType::kPle, .experts = 2, .layers = {6}, .levels = 2};

INSTANTIATE_TEST_SUITE_P(Tops,
                         JoinedInput,
                         testing::Values(TopCase{{}, {}},
                                         TopCase{{8}, {}},
                                         TopCase{{16, 7}, {}},
                                         TopCase{{}, {.num_labels = 3}},
                                         TopCase{{}, {.num_labels = 2, .hidden = {5}}},
                                         TopCase{{8}, {.num_labels = 2, .hidden = {5}}},
                                         TopCase{{}, {.num_labels = 2, .heads = kPle}}),
                         [](const auto& test) {
                           std::string name = "hidden";
                           for (const std::int64_t width : test.param.widths)
                             name += "_" + std::to_string(width);
                           return name + "_labels_" + std::to_string(test.param.output.num_labels) +
                                  (test.param.output.hidden.empty() ? "" : "_with_hidden_layers") +
                                  (test.param.output.heads.has_experts() ? "_of_experts" : "");
                         });

TEST(JoinedView, OfAnEmptyMatrixAndAnotherIsTheOther) {
  std::vector<float> numbers(6);
  const Matrix some(numbers.data(), 2, 3);
  const Joined joined(Matrix(nullptr, 2, 0), some);
  EXPECT_FALSE(joined.is_split());
  EXPECT_EQ(joined.left.data, some.data);
  EXPECT_EQ(joined.cols(), 3);
  EXPECT_EQ(joined.rows(), 2);
}

}  // namespace
}  // namespace satrap::dense::joined_test
