// Warp instructions of the operations of backend::Device per item, and bytes moved, in lock step:
// what a warp issues bounds the speed of these kernels as much as the bytes that they move. The
// load is the reference of bench/journal/gpu.md, made small: 40 features, dim 64, fp32 weights,
// bf16 vectors and gradients, Adagrad, about three occurrences per key.
#include <gtest/gtest.h>

#include "satrap/backend/cache.h"
#include "satrap/backend/device_plan.h"
#include "satrap/backend/window.h"
#include "tests/backend/backward_oracle.h"
#include "tests/support/ptx/environment.h"
#include "tests/support/ptx/sass.h"

namespace satrap::testing {
namespace {

constexpr std::int64_t kFeatures = 40, kDim = 64;
constexpr FloatType kVectors = FloatType::kBf16;
constexpr RowOptimizerType kOptimizer = RowOptimizerType::kAdagrad;

/// What an operation costs: warp instructions of SASS, kernels launched, sectors of 32 bytes.
struct Cost {
  double issued = 0;
  std::int64_t launches = 0;
  ptx::Sectors sectors;

  double bytes() const { return 32.0 * static_cast<double>(sectors.read + sectors.written); }
};

const std::map<std::string, ptx::Sass>& disassembly() {
  static const std::map<std::string, ptx::Sass> kernels = ptx::read_sass(ptx::folder());
  return kernels;
}

/// What has been executed since `before`.
Cost cost_since(const std::map<std::string, ptx::Executed>& before) {
  Cost cost;
  for (const auto& [name, executed] : ptx::program().executed()) {
    const auto found = before.find(name);
    const ptx::Executed earlier = found == before.end() ? ptx::Executed{} : found->second;
    if (executed.launches == earlier.launches) continue;
    std::map<int, std::int64_t> by_line;
    for (std::size_t i = 0; i < executed.by_instruction.size(); ++i) {
      by_line[ptx::program().kernel(name).lines[i].number] =
          executed.by_instruction[i] -
          (earlier.by_instruction.empty() ? 0 : earlier.by_instruction[i]);
    }
    cost.issued += disassembly().at(name).issued(by_line);
    cost.launches += executed.launches - earlier.launches;
    cost.sectors.read += executed.sectors.read - earlier.sectors.read;
    cost.sectors.written += executed.sectors.written - earlier.sectors.written;
  }
  return cost;
}

/// Bags of ids_per_bag ids of `distinct` keys, which occur equally often but for chance.
HostBatch reference_batch(std::int64_t num_examples,
                          std::int64_t ids_per_bag,
                          std::int64_t distinct,
                          std::int64_t num_features = kFeatures) {
  Random random(1);
  HostBatch batch;
  batch.num_examples = num_examples;
  batch.dim = kDim;
  batch.poolings.assign(static_cast<std::size_t>(num_features), Pooling::kSum);
  batch.max_lengths.assign(static_cast<std::size_t>(num_features), 1);
  for (std::int64_t bag = 0; bag < num_features * num_examples; ++bag) {
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
        window_(device(), {2, num_unique_, num_unique_ / 16 + 1}, stream_),
        vectors_(batch.num_examples * batch.row_stride()),
        steps_(
            std::vector<TableStep>(kMaxTables, {RowStep(optimizer_of(kOptimizer), 1.0, 1), 1, 1})) {
    device().fill(cache_.view().rows, 0, size_.total_slots() * layout_.device_stride, stream_);
    device().fill(vectors_.data(), 0x3C, 2 * batch.num_examples * batch.row_stride(), stream_);
  }

  std::int64_t num_unique() const { return num_unique_; }
  double pairs_of_vectors() const { return static_cast<double>(batch_.num_vectors()) / 2.0; }
  double pairs_of_keys() const { return static_cast<double>(num_unique_) / 2.0; }

  double bytes_of_forward() const {
    return unique() * static_cast<double>(layout_.padded_dim * bytes_of(layout_.weight_type)) +
           ids() * 8 + unique() * 4 + bytes_of_vectors();
  }
  double bytes_of_backward() const {
    const auto row = layout_.padded_dim * bytes_of(layout_.weight_type) + layout_.state_floats * 4;
    return unique() * 2 * static_cast<double>(row) + ids() * 8 + unique() * (4 + 4 + 8) +
           bytes_of_vectors();
  }

  Cost build_plan() {
    return count([&] {
      device().build_plan({on_device_.bags(), size_.num_sets, layout_.padded_dim, view()}, stream_);
    });
  }
  Cost resolve(std::uint32_t number) {
    return count([&] {
      device().resolve({cache_.view(), view(), {.batch = number}, plan_.misses()}, stream_);
    });
  }
  Cost touch(std::uint32_t number) {
    return count(
        [&] { device().touch({cache_.view(), window_.view(), view(), {number, 0}}, stream_); });
  }
  Cost pool_forward() {
    return count([&] {
      device().pool_forward({cache_.view(), on_device_.bags(), view(), kVectors, vectors_.data()},
                            stream_);
    });
  }
  Cost backward_update() {
    return count([&] {
      device().backward_update(
          {cache_.view(), view(), kVectors, vectors_.data(), kOptimizer, steps_.data()}, stream_);
    });
  }

 private:
  double unique() const { return static_cast<double>(num_unique_); }
  double ids() const { return static_cast<double>(batch_.num_ids()); }
  double bytes_of_vectors() const {
    return static_cast<double>(batch_.num_vectors() * layout_.padded_dim * bytes_of(kVectors));
  }
  backend::PlanView view() { return plan_.view(batch_.num_ids()); }

  template <class Operation>
  Cost count(Operation operation) {
    stream_.wait_until_idle();
    const auto before = ptx::program().executed();
    operation();
    stream_.wait_until_idle();
    return cost_since(before);
  }

  const HostBatch& batch_;
  const std::int64_t num_unique_;
  const RowLayout layout_ = RowLayout::of(kDim, FloatType::kFp32, kOptimizer);
  const backend::CacheSize size_;
  const backend::Stream stream_{device()};
  const DeviceBatch on_device_;
  const backend::PlanScratch scratch_;
  const backend::DevicePlan plan_;
  const backend::Cache cache_;
  const backend::Window window_;
  const DeviceArray<std::uint16_t> vectors_;  // bf16
  const DeviceArray<TableStep> steps_;
};

/// Budgets are what nvcc 13.0 emits and one in a hundred more. A change that lowers a figure lowers
/// its budget.
void expect_within(const char* what, double figure, double budget) {
  ::testing::Test::RecordProperty(what, std::to_string(figure));
  EXPECT_LE(figure, budget) << what;
  EXPECT_GE(figure, 0.9 * budget) << what << ": lower its budget";
}

/// The budgets of forward and backward on one batch: warp instructions per pair of vectors or keys,
/// and bytes of the sectors touched, relative to those that no way of computing could do without
/// (as in bench/backend: each row once, each id's index and factor, the vectors).
struct Budgets {
  double forward, forward_bytes, backward, backward_bytes;
};

void expect_training_within(Step& step, const Budgets& budgets) {
  const Cost forward = step.pool_forward(), backward = step.backward_update();
  expect_within("forward, warp instructions per two vectors",
                forward.issued / step.pairs_of_vectors(), budgets.forward);
  expect_within("forward, bytes", forward.bytes() / step.bytes_of_forward(), budgets.forward_bytes);
  EXPECT_EQ(forward.launches, 1);
  expect_within("backward, warp instructions per two keys", backward.issued / step.pairs_of_keys(),
                budgets.backward);
  expect_within("backward, bytes", backward.bytes() / step.bytes_of_backward(),
                budgets.backward_bytes);
  EXPECT_EQ(backward.launches, 3);
}

#define SATRAP_NEEDS_SASS() \
  if (disassembly().empty()) GTEST_SKIP() << "no nvdisasm; ./launch/setup.sh cuda installs it"

TEST(WarpInstructions, OfOneHotBags) {
  SATRAP_NEEDS_SASS();
  const HostBatch batch = reference_batch(192, 1, 2560);
  Step step(batch);
  const auto ids = static_cast<double>(batch.num_ids());
  const auto keys = static_cast<double>(step.num_unique());
  const Cost plan = step.build_plan(), misses = step.resolve(1), hits = step.resolve(2);
  expect_within("plan, warp instructions per id", plan.issued / ids, 11.83);
  expect_within("plan, bytes per id", plan.bytes() / ids, 112.0);
  EXPECT_EQ(plan.launches, 6);  // and CUB's
  expect_within("resolve of misses, warp instructions per key", misses.issued / keys, 95.3);
  expect_within("resolve of hits, warp instructions per key", hits.issued / keys, 11.1);
  EXPECT_EQ(hits.launches, 3);
  const Cost first = step.touch(1), again = step.touch(2);
  expect_within("touch of new keys, warp instructions per key", first.issued / keys, 74.5);
  expect_within("touch of known keys, warp instructions per key", again.issued / keys, 76.5);
  expect_within("touch of known keys, bytes per key", again.bytes() / keys, 88.0);
  EXPECT_EQ(again.launches, 2);
  expect_training_within(step, {68.5, 1.049, 368.5, 1.056});
}

TEST(WarpInstructions, OfBagsOfFive) {
  SATRAP_NEEDS_SASS();
  const HostBatch batch = reference_batch(64, 5, 4266);
  Step step(batch);
  step.build_plan();
  step.resolve(1);
  expect_training_within(step, {216.0, 1.025, 365.4, 1.069});
}

TEST(WarpInstructions, OfLongBags) {
  SATRAP_NEEDS_SASS();
  const HostBatch batch = reference_batch(4, 4096, 2560, 1);
  Step step(batch);
  const auto ids = static_cast<double>(batch.num_ids());
  const Cost plan = step.build_plan();
  EXPECT_EQ(plan.launches, 7);  // one for the ids of long bags
  step.resolve(1);
  const Cost forward = step.pool_forward();
  EXPECT_EQ(forward.launches, 2);
  // Each row of 256 bytes is two strips.
  expect_within("forward, warp instructions per id and strip", forward.issued / ids / 2.0, 9.23);
  expect_within("forward, bytes", forward.bytes() / step.bytes_of_forward(), 1.01);
}

}  // namespace
}  // namespace satrap::testing
