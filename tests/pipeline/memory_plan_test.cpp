#include "src/pipeline/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

BatchNeeds needs() {
  return {.batches = 6,
          .examples = 4096,
          .columns = 26 * 64,
          .device_columns = 26 * 64,
          .ids = 26,
          .numbers = 14,
          .num_parameters = 1 << 20,
          .optimizer_values = 2,
          .has_libtorch = true,
          .cache_bytes = 10 * kGiB,
          .free_bytes = 80 * kGiB};
}

TEST(MemoryPlan, CountsParametersWithTheirStateAndBatchesInFlight) {
  const MemoryPlan plan = plan_memory(needs());
  EXPECT_EQ(plan.cache, 10 * kGiB);
  EXPECT_EQ(plan.network, (std::int64_t{1} << 20) * 4 * 4);
  EXPECT_EQ(plan.batches, 6 * 4096 * ((26 * 128 + 2 * 26 * 64 * 4) * 5 / 4));
  EXPECT_GT(plan.libtorch, 0);
  EXPECT_EQ(plan.needed(), plan.cache + plan.network + plan.batches + plan.libtorch);
  plan.check();
  EXPECT_THAT(plan.describe(),
              AllOf(HasSubstr("10.0GiB for rows"), HasSubstr("16.0MiB for the network"),
                    HasSubstr("libtorch"), HasSubstr("80.0GiB that are free")));
}

TEST(MemoryPlan, OfANetworkOnTheCpuHasNoLibtorch) {
  BatchNeeds on_cpu = needs();
  on_cpu.num_parameters = 0;
  const MemoryPlan plan = plan_memory(on_cpu);
  EXPECT_EQ(plan.network, 0);
  EXPECT_EQ(plan.libtorch, 0);
  EXPECT_THAT(plan.describe(), Not(HasSubstr("libtorch")));
}

TEST(MemoryPlan, CountsWhatGpusExchange) {
  EXPECT_EQ(plan_memory(needs()).exchange, 0);
  BatchNeeds several = needs();
  several.exchanges_rows = true;
  const std::int64_t vectors = 2 * 4096 * 26 * 64 * 4, plans = 6 * 4096 * 26 * 128;
  EXPECT_EQ(plan_memory(several).exchange, (vectors + plans) * 5 / 4);
  several.sums_in_order = true;
  const MemoryPlan plan = plan_memory(several);
  EXPECT_EQ(plan.exchange, (vectors + plans) * 5 / 4 + (std::int64_t{4} << 20) * 5 / 4);
  EXPECT_EQ(plan.needed(),
            plan.cache + plan.network + plan.batches + plan.libtorch + plan.exchange);
  EXPECT_THAT(plan.describe(), HasSubstr("for what GPUs exchange"));
}

std::string refusal(const BatchNeeds& of) {
  try {
    plan_memory(of).check();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

TEST(MemoryPlan, WhatDoesNotFitIsRefusedWithWhatWould) {
  BatchNeeds large = needs();
  large.cache_bytes = 79 * kGiB + kGiB / 2;
  const std::string text = refusal(large);
  EXPECT_THAT(text, AllOf(HasSubstr("embedding.cache.memory: 79.5GiB do not fit"),
                          HasSubstr("GiB or less, or ")));
  // What it says fits.
  large.cache_bytes = kGiB * 707 / 10;
  plan_memory(large).check();
}

TEST(MemoryPlan, WhatFitsExactlyIsTaken) {
  BatchNeeds large = needs();
  const MemoryPlan plan = plan_memory(large);
  large.cache_bytes = plan.free - (plan.needed() - plan.cache);
  plan_memory(large).check();
  ++large.cache_bytes;
  EXPECT_NE(refusal(large), "");
}

TEST(MemoryPlan, RowsThatCrossOverToTheHostTakeNoRoom) {
  BatchNeeds crossing = needs();
  crossing.device_columns = 0;
  EXPECT_EQ(plan_memory(crossing).batches, 6 * 4096 * (26 * 128 * 5 / 4));
}

TEST(MemoryPlan, BatchesThatFillTheGpuAreToBeSmaller) {
  BatchNeeds huge = needs();
  huge.examples = 4 << 20;
  EXPECT_THAT(refusal(huge),
              AllOf(HasSubstr("use a smaller data.batch_size"), Not(HasSubstr("or less"))));
}

}  // namespace
}  // namespace satrap::pipeline
