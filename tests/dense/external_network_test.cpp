#include "satrap/dense/external_network.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::dense {
namespace {

using Kind = NetworkCall::Kind;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kDeadline(60);

/// Two numbers, two fields of widths 2 and 1, one label.
class ExternalNetworkTest : public testing::Test {
 protected:
  static constexpr std::int64_t kExamples = 3;

  ~ExternalNetworkTest() override { join(); }

  /// A program that answers every call with `answer`, until there are no more.
  template <class Answer>
  void serve(Answer answer) {
    program_ = std::thread([this, answer] {
      while (NetworkCall* call = next()) {
        if (answer(*call)) calls_.answer();
      }
    });
  }
  NetworkCall* next() { return calls_.wait_until(std::chrono::steady_clock::now() + kDeadline); }
  void join() {
    calls_.end();
    if (program_.joinable()) program_.join();
  }

  DenseResult step() {
    network_.forward_backward(
        {.num_examples = kExamples,
         .numeric = host_matrix(std::span<const float>(numeric_), kExamples, 2),
         .pooled = host_matrix(std::span<const float>(pooled_), kExamples, 3),
         .labels = host_matrix(std::span<const float>(labels_), kExamples, 1),
         .step = 7},
        {.probabilities = host_matrix(std::span(probabilities_), kExamples, 1),
         .grad_pooled = host_matrix(std::span(gradient_), kExamples, 3)},
        {});
    network_.copy_flag(&flag_, Place::kHost);
    network_.apply(7);
    return network_.finish();
  }

  NetworkCalls calls_;
  ThreadPool pool_{2};
  std::vector<float> summed_ = std::vector<float>(DenseNetwork::kFlagFloats, 9.0F);
  ExternalNetwork network_{calls_, {.num_numeric = 2, .field_widths = {2, 1}}, 5, summed_, pool_};
  std::vector<float> numeric_ = {1, 2, 3, 4, 5, 6}, pooled_ = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                     labels_ = {0, 1, 0}, probabilities_ = {9, 9, 9},
                     gradient_ = std::vector<float>(9, 9.0F);
  float flag_ = -1.0F;
  std::vector<Kind> kinds_;

 private:
  std::thread program_;
};

TEST_F(ExternalNetworkTest, TheProgramAddsItsGradientToZerosAndAppliesAfterwards) {
  serve([this](NetworkCall& call) {
    kinds_.push_back(call.kind);
    EXPECT_EQ(call.input.step, 7);
    if (call.kind != Kind::kStep) return true;
    auto* const gradient = static_cast<float*>(call.grad_pooled.data);
    const auto* const pooled = static_cast<const float*>(call.input.pooled.data);
    for (int i = 0; i < 9; ++i) gradient[i] += 2.0F * pooled[i];
    call.result = {.loss = 0.5, .grad_norm = 2.0};
    return true;
  });
  const DenseResult result = step();
  join();
  EXPECT_THAT(kinds_, ElementsAre(Kind::kStep, Kind::kApply));
  EXPECT_THAT(gradient_, ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18));
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.loss, 0.5);
  EXPECT_EQ(result.grad_norm, 2.0);
  EXPECT_EQ(flag_, 0.0F);
  for (const float p : probabilities_) EXPECT_TRUE(std::isnan(p));  // it has given none
}

/// A network of two floats that ranks sum.
class SummedNetworkTest : public ExternalNetworkTest {
 protected:
  std::vector<float> memory_ = std::vector<float>(DenseNetwork::kFlagFloats + 2, 9.0F);
  ExternalNetwork summed_network_{calls_,
                                  {.num_numeric = 2, .field_widths = {2, 1}},
                                  5,
                                  memory_,
                                  pool_};

  DenseResult step(std::int64_t examples, float flags_of_others, float losses_of_others) {
    const std::vector<float> inputs(3 * static_cast<std::size_t>(examples));
    std::vector<float> predictions(static_cast<std::size_t>(examples)), gradient(inputs.size());
    const auto first_of = [&](std::int64_t columns) {
      return host_matrix(std::span(inputs).first(static_cast<std::size_t>(columns * examples)),
                         examples, columns);
    };
    summed_network_.forward_backward(
        {.num_examples = examples,
         .numeric = first_of(2),
         .pooled = first_of(3),
         .labels = first_of(1),
         .loss_examples = 4 * kExamples},
        {.probabilities = host_matrix(std::span(predictions), examples, 1),
         .grad_pooled = host_matrix(std::span(gradient), examples, 3)},
        {});
    const std::span<float> first = summed_network_.flag_and_first_bucket();
    EXPECT_EQ(first.size(), memory_.size());
    EXPECT_EQ(first.data() + DenseNetwork::kFlagFloats, summed_network_.gradient().data());
    first[0] += flags_of_others;
    first[2] += losses_of_others;
    for (float& value : summed_network_.gradient()) value += 10.0F;  // the others' share
    summed_network_.apply(1);
    return summed_network_.finish();
  }

  /// Writes 1 and 2 as its share, and keeps what it finds in kApply.
  void serve_sums() {
    serve([this](NetworkCall& call) {
      const std::span<float> values = summed_network_.gradient();
      if (call.kind == Kind::kStep) {
        values[0] = 1.0F;
        values[1] = 2.0F;
        call.result = {.loss = 8.0, .grad_norm = 1.0};
      } else {
        found_.assign(values.begin(), values.end());
        call.result.grad_norm = 5.0;
      }
      return true;
    });
  }
  std::vector<float> found_;
};

TEST_F(SummedNetworkTest, ItsProgramFindsTheSumsAndTheLossIsTheMeanOverAll) {
  serve_sums();
  const DenseResult result = step(kExamples, 0.0F, 3.0F);
  join();
  EXPECT_THAT(found_, ElementsAre(11, 12));
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.loss, 8.0 / 4 + 3.0);  // it has a quarter of the examples
  EXPECT_EQ(result.grad_norm, 5.0);
}

TEST_F(SummedNetworkTest, WhatIsNotFiniteOnAnotherRankIsNotApplied) {
  serve_sums();
  EXPECT_FALSE(step(kExamples, 1.0F, 0.0F).finite);
  join();
  EXPECT_TRUE(found_.empty());
}

TEST_F(SummedNetworkTest, ARankWithoutExamplesTakesPart) {
  serve_sums();
  const DenseResult result = step(0, 0.0F, 3.0F);
  join();
  EXPECT_THAT(found_, ElementsAre(11, 12));
  EXPECT_EQ(result.loss, 3.0);
}

TEST_F(ExternalNetworkTest, AGradientThatIsNotFiniteIsNotApplied) {
  serve([this](NetworkCall& call) {
    kinds_.push_back(call.kind);
    static_cast<float*>(call.grad_pooled.data)[8] = std::numeric_limits<float>::infinity();
    return true;
  });
  EXPECT_FALSE(step().finite);
  join();
  EXPECT_EQ(flag_, 1.0F);
  EXPECT_THAT(kinds_, ElementsAre(Kind::kStep));
}

TEST_F(ExternalNetworkTest, WhatTheProgramCallsNotFiniteIsNotApplied) {
  serve([this](NetworkCall& call) {
    kinds_.push_back(call.kind);
    call.result.finite = false;
    return true;
  });
  EXPECT_FALSE(step().finite);
  join();
  EXPECT_EQ(flag_, 1.0F);
  EXPECT_THAT(kinds_, ElementsAre(Kind::kStep));
}

TEST_F(ExternalNetworkTest, AStepThatIsBeingComputedCanBeDeclinedAndOtherCallsStillCome) {
  serve([this](NetworkCall& call) {
    if (call.kind == Kind::kStep) {
      calls_.decline_steps();
      return false;
    }
    call.state = "12345678";
    return true;
  });
  EXPECT_THROW(step(), StepDeclined);
  EXPECT_THROW(step(), StepDeclined);  // before it is handed over
  EXPECT_EQ(network_.save().front().values.size(), 2U);
  join();
}

TEST_F(ExternalNetworkTest, NothingIsAnsweredOnceTheProgramHasFailed) {
  serve([this](NetworkCall& call) {
    if (call.kind != Kind::kSave) return true;
    calls_.fail("ValueError: no");
    return false;
  });
  for (int i = 0; i < 2; ++i) {
    try {
      network_.save();
      ADD_FAILURE() << "saved";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_THAT(error.what(), HasSubstr("the program that computes the network: ValueError: no"));
    }
  }
  EXPECT_THROW(step(), Error);
  join();
}

TEST_F(ExternalNetworkTest, AStateComesBackByteForByte) {
  std::string bytes(64 * 4, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  const std::uint32_t signalling_nan = 0x7FA00001;
  std::memcpy(bytes.data(), &signalling_nan, sizeof(signalling_nan));
  std::string loaded;
  serve([&](NetworkCall& call) {
    if (call.kind == Kind::kSave) call.state = bytes;
    if (call.kind == Kind::kLoad) loaded = call.state;
    return true;
  });
  const Savable::State state = network_.save();
  ASSERT_EQ(state.size(), 1U);
  EXPECT_THAT(state[0].shape, ElementsAre(64));
  network_.load(state);
  join();
  EXPECT_EQ(loaded, bytes);
  EXPECT_FALSE(network_.has_fixed_state());
}

TEST_F(ExternalNetworkTest, TheStateOfAnotherNetworkIsRefusedByName) {
  try {
    network_.load({{"bottom.0.weight", {1}, {1.0F}}});
    ADD_FAILURE() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    EXPECT_THAT(error.what(), HasSubstr("it has 'bottom.0.weight'"));
  }
}

TEST_F(ExternalNetworkTest, PredictionsAreWrittenByTheProgram) {
  serve([](NetworkCall& call) {
    EXPECT_EQ(call.kind, Kind::kPredict);
    auto* const to = static_cast<float*>(call.probabilities.data);
    for (int i = 0; i < 3; ++i) to[i] = 0.25F;
    return true;
  });
  const DenseInput input{.num_examples = kExamples,
                         .numeric = host_matrix(std::span<const float>(numeric_), kExamples, 2),
                         .pooled = host_matrix(std::span<const float>(pooled_), kExamples, 3),
                         .labels = {}};
  network_.predict(input, host_matrix(std::span(probabilities_), kExamples, 1));
  join();
  EXPECT_THAT(probabilities_, Each(0.25F));
}

TEST_F(ExternalNetworkTest, AWaitEndsWithTheTimeOrWithTheRun) {
  const auto past = std::chrono::steady_clock::now();
  EXPECT_EQ(calls_.wait_until(past), nullptr);
  EXPECT_FALSE(calls_.has_ended());
  calls_.end();
  EXPECT_EQ(next(), nullptr);
  EXPECT_TRUE(calls_.has_ended());
}

TEST_F(ExternalNetworkTest, TheProgramExportsItselfButNotAsTorchScript) {
  serve([](NetworkCall& call) {
    EXPECT_EQ(call.kind, Kind::kExport);
    call.state = std::string("as ") + call.format;
    return true;
  });
  EXPECT_EQ(network_.to_onnx(), "as onnx");
  EXPECT_EQ(network_.to_pt2(), "as pt2");
  EXPECT_EQ(network_.to_safetensors(), "as safetensors");
  join();
  EXPECT_THROW(network_.to_torchscript(), Error);
}

}  // namespace
}  // namespace satrap::dense
