// Warp instructions of the operations of backend::Device per item, in lock step: what a warp issues
// bounds the speed of these kernels as much as the bytes that they move. The load is the reference
// of bench/README.md, made small: 40 features, dim 64, fp32 weights, bf16 vectors and gradients,
// Adagrad, about three occurrences per key.
#include <gtest/gtest.h>

#include "satrap/backend/cache.h"
#include "satrap/backend/plan.h"
#include "tests/backend/backward_oracle.h"
#include "tests/support/ptx/environment.h"

namespace satrap::testing {
namespace {

constexpr std::int64_t kFeatures = 40, kDim = 64;
constexpr FloatType kVectors = FloatType::kBf16;
constexpr RowOptimizerType kOptimizer = RowOptimizerType::kAdagrad;

std::int64_t warp_instructions() {
  std::int64_t sum = 0;
  for (const auto& [name, executed] : ptx::program().executed()) sum += executed.warp_instructions;
  return sum;
}

/// Bags of ids_per_bag ids of `distinct` keys, which occur equally often but for chance.
HostBatch reference_batch(std::int64_t num_examples,
                          std::int64_t ids_per_bag,
                          std::int64_t distinct) {
  Random random(1);
  HostBatch batch;
  batch.num_examples = num_examples;
  batch.dim = kDim;
  batch.poolings.assign(kFeatures, Pooling::kSum);
  batch.max_lengths.assign(kFeatures, 1);
  for (std::int64_t bag = 0; bag < kFeatures * num_examples; ++bag) {
    for (std::int64_t i = 0; i < ids_per_bag; ++i) {
      const auto id = static_cast<std::uint64_t>(random.below(distinct));
      batch.keys.push_back(make_key(TableId{1}, id));
    }
    batch.offsets.push_back(batch.num_ids());
  }
  return batch;
}

/// The operations of one step on a batch, one by one.
class Step {
 public:
  explicit Step(const HostBatch& batch)
      : batch_(batch),
        num_unique_(static_cast<std::int64_t>(make_host_plan(batch).tags.size())),
        size_{num_unique_ / 16 + 1, 0},  // so many sets that nearly all keys find a way
        on_device_(batch),
        scratch_(device(), batch.num_ids(), layout_),
        plan_(device(), scratch_, 0),
        cache_(device(), layout_, size_, backend::EvictionPolicy::kLru, stream_),
        vectors_(batch.num_examples * batch.row_stride()),
        steps_(
            std::vector<TableStep>(kMaxTables, {RowStep(optimizer_of(kOptimizer), 1.0, 1), 1, 1})) {
    device().fill(cache_.view().rows, 0, size_.total_slots() * layout_.device_stride, stream_);
    device().fill(vectors_.data(), 0x3C, 2 * batch.num_examples * batch.row_stride(), stream_);
  }

  std::int64_t num_unique() const { return num_unique_; }
  double pairs_of_vectors() const { return static_cast<double>(batch_.num_vectors()) / 2.0; }
  double pairs_of_keys() const { return static_cast<double>(num_unique_) / 2.0; }

  std::int64_t build_plan() {
    return count([&] {
      device().build_plan(on_device_.bags(), size_.num_sets, layout_.padded_dim, view(), stream_);
    });
  }
  std::int64_t resolve(std::uint32_t number) {
    return count([&] {
      device().resolve(cache_.view(), view(), {.batch = number}, plan_.misses(), stream_);
    });
  }
  std::int64_t pool_forward() {
    return count([&] {
      device().pool_forward(cache_.view(), on_device_.bags(), view(), kVectors, vectors_.data(),
                            stream_);
    });
  }
  std::int64_t backward_update() {
    return count([&] {
      device().backward_update(cache_.view(), view(), kVectors, vectors_.data(), kOptimizer,
                               steps_.data(), stream_);
    });
  }

 private:
  backend::PlanView view() { return plan_.view(batch_.num_ids()); }

  template <class Operation>
  std::int64_t count(Operation operation) {
    stream_.wait_until_idle();
    const std::int64_t before = warp_instructions();
    operation();
    stream_.wait_until_idle();
    return warp_instructions() - before;
  }

  const HostBatch& batch_;
  const std::int64_t num_unique_;
  const RowLayout layout_ = RowLayout::of(kDim, FloatType::kFp32, kOptimizer);
  const backend::CacheSize size_;
  const backend::Stream stream_{device()};
  const DeviceBatch on_device_;
  const backend::PlanScratch scratch_;
  const backend::Plan plan_;
  const backend::Cache cache_;
  const DeviceArray<std::uint16_t> vectors_;  // bf16
  const DeviceArray<TableStep> steps_;
};

/// Budgets: what nvcc 13.0 emits for compute_90, and one in a hundred more. A change that lowers a
/// count lowers its budget.
void expect_within(const char* what, double per_item, double budget) {
  ::testing::Test::RecordProperty(what, std::to_string(per_item));
  EXPECT_LE(per_item, budget) << what;
  EXPECT_GE(per_item, 0.9 * budget) << what << ": lower its budget";
}

TEST(WarpInstructions, OfOneHotBags) {
  const HostBatch batch = reference_batch(48, 1, 640);
  Step step(batch);
  const auto ids = static_cast<double>(batch.num_ids());
  const auto keys = static_cast<double>(step.num_unique());
  expect_within("plan, per id", static_cast<double>(step.build_plan()) / ids, 30.2);
  expect_within("resolve of misses, per key", static_cast<double>(step.resolve(1)) / keys, 124.5);
  expect_within("resolve of hits, per key", static_cast<double>(step.resolve(2)) / keys, 25.5);
  expect_within("forward, per two vectors",
                static_cast<double>(step.pool_forward()) / step.pairs_of_vectors(), 273);
  expect_within("backward, per two keys",
                static_cast<double>(step.backward_update()) / step.pairs_of_keys(), 332);
}

TEST(WarpInstructions, OfBagsOfFive) {
  const HostBatch batch = reference_batch(16, 5, 1066);
  Step step(batch);
  step.build_plan();
  step.resolve(1);
  expect_within("forward, per two vectors",
                static_cast<double>(step.pool_forward()) / step.pairs_of_vectors(), 392);
}

}  // namespace
}  // namespace satrap::testing
