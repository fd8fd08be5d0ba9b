#include "satrap/backend/device_plan.h"

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/backend/host_plan.h"

namespace satrap::testing {
namespace {

constexpr std::int64_t kSets = 7;

std::uint64_t set_of(std::uint64_t tag) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(tag) * kSets) >> 64);
}

void build_on_device(const HostBatch& batch, const backend::DevicePlan& plan) {
  const DeviceBatch on_device(batch);
  const backend::Stream stream(device());
  device().build_plan({on_device.bags(), kSets, batch.padded_dim(), plan.view(batch.num_ids())},
                      stream);
  stream.wait_until_idle();
}

/// Compares all of a plan but the scratch with the host's.
void expect_plan_of(const HostBatch& batch, const backend::DevicePlan& plan) {
  const backend::PlanView view = plan.view(batch.num_ids());
  const HostPlan expected = make_host_plan(batch);
  const backend::PlanCounts counts = download(view.counts, 1)[0];
  ASSERT_EQ(counts.unique, expected.tags.size());
  EXPECT_EQ(download(view.unique_tags, counts.unique), expected.tags);
  const auto unique_of = download(view.unique_of, batch.num_ids());
  EXPECT_EQ(std::vector<std::int64_t>(unique_of.begin(), unique_of.end()), expected.unique_of);
  EXPECT_EQ(download(view.coefficients, batch.num_ids()), expected.coefficients);

  std::vector<std::uint32_t> segments{0}, targets, set_runs;
  std::vector<float> coefficients;
  std::vector<std::uint32_t> long_unique, long_chunks{0}, long_groups{0};
  for (std::size_t u = 0; u < expected.tags.size(); ++u) {
    if (u == 0 || set_of(expected.tags[u]) != set_of(expected.tags[u - 1])) {
      set_runs.push_back(static_cast<std::uint32_t>(u));
    }
    for (const auto& occurrence : expected.occurrences[u]) {
      targets.push_back(static_cast<std::uint32_t>(occurrence.target / 4));
      coefficients.push_back(occurrence.coefficient);
    }
    segments.push_back(static_cast<std::uint32_t>(targets.size()));
    const auto length = static_cast<std::int64_t>(expected.occurrences[u].size());
    if (length > kSumChunk) {
      const std::int64_t chunks = (length + kSumChunk - 1) / kSumChunk;
      const std::int64_t groups = chunks > kSumChunk ? (chunks + kSumChunk - 1) / kSumChunk : 0;
      long_unique.push_back(static_cast<std::uint32_t>(u));
      long_chunks.push_back(long_chunks.back() + static_cast<std::uint32_t>(chunks));
      long_groups.push_back(long_groups.back() + static_cast<std::uint32_t>(groups));
    }
  }
  const auto num_used = static_cast<std::int64_t>(targets.size());
  EXPECT_EQ(counts.occurrences, targets.size());
  EXPECT_EQ(download(view.occurrence_targets, num_used), targets);
  EXPECT_EQ(download(view.occurrence_coefficients, num_used), coefficients);
  ASSERT_EQ(counts.set_runs, set_runs.size());
  ASSERT_EQ(counts.longs, long_unique.size());
  EXPECT_EQ(counts.chunks, long_chunks.back());
  EXPECT_EQ(counts.groups, long_groups.back());
  EXPECT_EQ(download(view.long_unique, counts.longs), long_unique);
  if (counts.unique == 0) return;
  set_runs.push_back(counts.unique);
  EXPECT_EQ(download(view.segments, counts.unique + 1), segments);
  EXPECT_EQ(download(view.set_runs, counts.set_runs + 1), set_runs);
  EXPECT_EQ(download(view.long_chunks, counts.longs + 1), long_chunks);
  EXPECT_EQ(download(view.long_groups, counts.longs + 1), long_groups);
}

void check_plan(const HostBatch& batch, const backend::DevicePlan& plan) {
  build_on_device(batch, plan);
  expect_plan_of(batch, plan);
}

void check_plan(const HostBatch& batch) {
  const RowLayout layout = RowLayout::of(batch.dim, FloatType::kFp32, RowOptimizerType::kAdagrad);
  const backend::PlanScratch scratch(device(), std::max<std::int64_t>(1, batch.num_ids()), layout);
  const backend::DevicePlan plan(device(), scratch, 4);
  for_each_schedule([&] { check_plan(batch, plan); });
}

TEST(DeviceTag, IsABijectionThatSpreadsTables) {
  for (int table = 0; table < 50; ++table) {
    const Key key = make_key(static_cast<TableId>(table), static_cast<std::uint64_t>(table) * 977);
    EXPECT_EQ(backend::key_of_tag(backend::tag_of(key)), key);
  }
  const auto top = [](int table) {
    return backend::tag_of(make_key(static_cast<TableId>(table), 5)) >> 58;
  };
  EXPECT_FALSE(top(0) == top(1) && top(1) == top(2) && top(2) == top(3));
}

TEST(DevicePlan, TwoBagsOfThreeKeys) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 2;
  batch.poolings = {Pooling::kMean};
  batch.max_lengths = {1};
  const TableId table{};
  batch.keys = {make_key(table, 1), make_key(table, 2), make_key(table, 1), make_key(table, 3)};
  batch.offsets = {0, 3, 4};
  check_plan(batch);
}

TEST(DevicePlan, LongBagsAreDescribedBesideShortOnes) {
  SATRAP_NEEDS_DEVICE();
  constexpr std::int64_t kLongest = backend::kMaxShortBag;  // of short bags
  const std::vector<Pooling> poolings{Pooling::kMean, Pooling::kSequence, Pooling::kSqrtN,
                                      Pooling::kSum};
  const std::vector<std::vector<std::int64_t>> lengths{{kLongest, kLongest + 1, 0, 2, 5000},
                                                       {600, 2, 0, 0, 1},
                                                       {1, 1, 257, 512, 513},
                                                       {0, 0, 0, 3, 999}};
  for (const bool weighted : {false, true}) {
    SCOPED_TRACE(weighted);
    check_plan(batch_of_lengths(poolings, lengths, 8, weighted, 5));
  }
  // More bags than lanes of a warp, so that several turns have long bags.
  std::vector<std::int64_t> many(70, 1);
  many[0] = many[31] = many[32] = many[50] = many[69] = 300;
  check_plan(batch_of_lengths({Pooling::kMean}, {many}, 4, true, 6));
}

TEST(DevicePlan, AScaleOfWeightsThatCancelOutIsZero) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch = batch_of_lengths({Pooling::kMean}, {{300}}, 4, true, 7);
  for (std::size_t i = 0; i < batch.weights.size(); ++i)
    batch.weights[i] = i % 2 == 0 ? 1.0F : -1.0F;
  check_plan(batch);
}

TEST(DevicePlan, EmptyBatchHasNoKeys) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 3;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  batch.offsets = {0, 0, 0, 0};
  check_plan(batch);
}

TEST(DevicePlan, SequenceOfNothingUsed) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 1;
  batch.poolings = {Pooling::kSequence};
  batch.max_lengths = {1};
  batch.keys = {make_key(TableId{}, 1), make_key(TableId{}, 1), make_key(TableId{}, 2)};
  batch.offsets = {0, 3};
  check_plan(batch);
}

TEST(DevicePlan, OneKeyEverywhere) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t count : {63, 64, 65, 128, 1000, 4097, 9000}) {
    SCOPED_TRACE(count);
    check_plan(one_key(count, 4));
  }
}

TEST(DevicePlan, EqualsTheHostOnRandomBatches) {
  SATRAP_NEEDS_DEVICE();
  const std::vector<Pooling> all{Pooling::kSum, Pooling::kMean, Pooling::kSqrtN,
                                 Pooling::kSequence};
  std::uint64_t seed = 0;
  for (const std::int64_t max_bag : {1, 7, 400}) {
    for (const std::int64_t distinct : {1, 30, 5000}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      check_plan(random_batch({.num_examples = max_bag > 100 ? 3 : 23,
                               .max_bag = max_bag,
                               .distinct_ids = distinct,
                               .weighted = seed % 2 == 0,
                               .poolings = all},
                              seed));
      ++seed;
    }
  }
}

TEST(DevicePlan, EqualsTheHostForEveryDegreeOfDuplicates) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t percent : kDuplicatePercents) {
    SCOPED_TRACE(percent);
    check_plan(batch_with_duplicates(3989, percent, 4, static_cast<std::uint64_t>(percent)));
  }
}

// The sort leaves these out. Some have the prefix of ids that are not used, which are all ones.
TEST(DevicePlan, TagsThatDifferOnlyInTheirLowBits) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t distinct : {2, 60}) {
    SCOPED_TRACE(distinct);
    Random random(static_cast<std::uint64_t>(distinct));
    HostBatch batch;
    batch.num_examples = 150;
    batch.poolings = {Pooling::kSum, Pooling::kSequence};
    batch.max_lengths = {1, 2};
    for (std::int64_t bag = 0; bag < 2 * batch.num_examples; ++bag) {
      for (std::int64_t i = random.below(4); i > 0; --i) {
        const auto prefix = static_cast<std::uint64_t>(random.below(20) - 1) << 32;
        const auto low = static_cast<std::uint64_t>(random.below(distinct)) << kTableBits;
        batch.keys.push_back(backend::key_of_tag(prefix | low | 1U));
      }
      batch.offsets.push_back(batch.num_ids());
    }
    check_plan(batch);
  }
}

TEST(DevicePlan, AFrequentKeyMayHaveThePrefixOfOthers) {
  SATRAP_NEEDS_DEVICE();
  Random random(5);
  HostBatch batch;
  batch.num_examples = 1000;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  for (std::int64_t bag = 0; bag < batch.num_examples; ++bag) {
    // In places of its own the order of two prefixes begins and ends with the frequent key.
    const std::int64_t frequent = random.below(10);
    const auto prefix = static_cast<std::uint64_t>(random.below(2) + 7) << 32;
    const auto low = static_cast<std::uint64_t>(frequent > 0 ? 1 : random.below(3));
    batch.keys.push_back(backend::key_of_tag(prefix | low << kTableBits | 1U));
    batch.offsets.push_back(batch.num_ids());
  }
  check_plan(batch);
}

TEST(DevicePlan, KeepsItsOwnWhenAnotherUsesTheSameScratch) {
  SATRAP_NEEDS_DEVICE();
  const HostBatch first = batch_with_duplicates(900, 50, 4, 1), second = one_key(700, 4);
  const RowLayout layout = RowLayout::of(4, FloatType::kFp32, RowOptimizerType::kAdagrad);
  const backend::PlanScratch scratch(device(), 900, layout);
  const backend::DevicePlan plan(device(), scratch, 4), other(device(), scratch, 4);
  for_each_schedule([&] {
    build_on_device(first, plan);
    build_on_device(second, other);
    expect_plan_of(first, plan);
    expect_plan_of(second, other);
  });
}

TEST(DevicePlan, IsReusedForSmallerBatches) {
  SATRAP_NEEDS_DEVICE();
  const BatchShape shape{.num_examples = 20, .max_bag = 9};
  const RowLayout layout = RowLayout::of(shape.dim, FloatType::kFp32, RowOptimizerType::kAdagrad);
  const backend::PlanScratch scratch(device(), 500, layout);
  const backend::DevicePlan plan(device(), scratch, 4);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    check_plan(random_batch({.num_examples = 20 - 6 * static_cast<std::int64_t>(seed)}, seed),
               plan);
  }
  EXPECT_THROW(plan.view(501), Error);
}

}  // namespace
}  // namespace satrap::testing
