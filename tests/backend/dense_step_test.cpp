// What a dense network in a device's memory needs of it: dropout, updates that a flag cancels, and
// memory and order for libtorch.

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "satrap/backend/device_matrix.h"
#include "satrap/backend/device_plan.h"
#include "tests/backend/backward_oracle.h"

namespace satrap::testing {
namespace {

TEST(DeviceDropout, FactorsAreThoseOfItsDefinition) {
  SATRAP_NEEDS_DEVICE();
  struct Case {
    std::int64_t first_example, rows, columns, stride;
    double rate;
  };
  for (const Case& c :
       {Case{0, 1, 1, 1, 0.5}, Case{5, 33, 7, 7, 0.3}, Case{1'000'000, 17, 64, 80, 0.9},
        Case{3, 300, 130, 131, 0.0}, Case{0, 0, 4, 4, 0.5}, Case{0, 4, 0, 4, 0.5}}) {
    SCOPED_TRACE(::testing::Message() << c.rows << " rows of " << c.columns);
    const Dropout dropout(c.rate, 11);
    const std::int64_t size = std::max<std::int64_t>(1, c.rows * c.stride);
    std::vector<float> expected(static_cast<std::size_t>(size), -1.0F);
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t column = 0; column < c.columns; ++column) {
        expected[static_cast<std::size_t>(r * c.stride + column)] =
            dropout.factor(dropout.draws_of(c.first_example + r), column);
      }
    }
    for_each_schedule([&] {
      const DeviceArray<float> out(std::vector<float>(expected.size(), -1.0F));
      const backend::Stream stream(device());
      device().dropout_factors({dropout, c.first_example, c.rows, c.columns, out.data(), c.stride},
                               stream);
      stream.wait_until_idle();
      ASSERT_EQ(out.host(), expected);
    });
  }
}

TEST(DeviceSum, AddsVectorsInTheirOrder) {
  SATRAP_NEEDS_DEVICE();
  for (const std::size_t num_vectors : {1, 2, 3, 5, 64}) {
    for (const std::int64_t count : {0, 1, 127, 128, 1'000}) {
      SCOPED_TRACE(::testing::Message() << num_vectors << " vectors of " << count);
      std::mt19937 random(static_cast<unsigned>(num_vectors));
      std::uniform_real_distribution<float> values(-1.0F, 1.0F);
      std::vector<float> all(num_vectors *
                             static_cast<std::size_t>(std::max<std::int64_t>(1, count)));
      for (float& value : all) value = values(random);
      // The third one, or the last, is also where the sum goes.
      const std::size_t in_place = std::min<std::size_t>(num_vectors - 1, 2);
      std::vector<float> expected = all;
      for (std::int64_t i = 0; i < count; ++i) {
        float sum = all[static_cast<std::size_t>(i)];
        for (std::size_t v = 1; v < num_vectors; ++v) {
          sum += all[v * static_cast<std::size_t>(count) + static_cast<std::size_t>(i)];
        }
        expected[in_place * static_cast<std::size_t>(count) + static_cast<std::size_t>(i)] = sum;
      }
      for_each_schedule([&] {
        const DeviceArray<float> vectors(all);
        std::vector<const float*> begins;
        for (std::size_t v = 0; v < num_vectors; ++v) {
          begins.push_back(vectors.data() + static_cast<std::int64_t>(v) * count);
        }
        const backend::Stream stream(device());
        device().add_in_order(
            {begins, count, vectors.data() + static_cast<std::int64_t>(in_place) * count}, stream);
        stream.wait_until_idle();
        ASSERT_EQ(vectors.host(), expected);
      });
    }
  }
}

TEST(DeviceSum, RefusesNoneAndTooMany) {
  SATRAP_NEEDS_DEVICE();
  const DeviceArray<float> sum(std::vector<float>{1.0F});
  const backend::Stream stream(device());
  EXPECT_THROW(device().add_in_order({{}, 1, sum.data()}, stream), Error);
  const std::vector<const float*> many(backend::kMaxAdded + 1, sum.data());
  EXPECT_THROW(device().add_in_order({many, 1, sum.data()}, stream), Error);
}

/// The rows after one update by a gradient of 1, before which *flag was tested.
std::vector<std::byte> updated_rows(const HostBatch& batch, float flag, bool is_tested) {
  const RowLayout layout = RowLayout::of(4, FloatType::kFp32, RowOptimizerType::kSgd);
  const backend::CacheSize size{4, 1};
  const DeviceBatch on_device(batch);
  const backend::Stream stream(device());
  const backend::Cache cache(device(), layout, size, backend::EvictionPolicy::kLru, stream);
  const backend::PlanScratch scratch(device(), std::max<std::int64_t>(1, batch.num_ids()), layout);
  const backend::DevicePlan plan(device(), scratch, 0);
  const backend::PlanView view = plan.view(batch.num_ids());
  const DeviceArray<float> flag_on_device(std::vector<float>{flag});
  const DeviceArray<float> gradient(
      std::vector<float>(static_cast<std::size_t>(batch.num_examples * batch.row_stride()), 1.0F));
  RowOptimizer optimizer;
  optimizer.type = RowOptimizerType::kSgd;
  const DeviceArray<TableStep> steps(std::vector<TableStep>{{RowStep(optimizer, 1.0, 1), 1, 1}});
  std::vector<std::int32_t> slots(static_cast<std::size_t>(size.num_slots()));
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int32_t>(i);
  device().fill(cache.view().rows, 0, size.total_slots() * layout.device_stride, stream);
  device().build_plan({on_device.bags(), size.num_sets, layout.padded_dim, view}, stream);
  device().copy(view.slots, slots.data(), std::min(batch.num_ids(), size.num_slots()) * 4, stream);
  if (is_tested) device().cancel_update({flag_on_device.data(), view}, stream);
  device().backward_update(
      {cache.view(), view, FloatType::kFp32, gradient.data(), RowOptimizerType::kSgd, steps.data()},
      stream);
  stream.wait_until_idle();
  return download(cache.view().rows, size.total_slots() * layout.device_stride);
}

TEST(DeviceBackward, IsCancelledByAFlagThatIsNotZero) {
  SATRAP_NEEDS_DEVICE();
  // Keys of one occurrence, and of several chunks.
  for (const std::int64_t distinct : {60, 2}) {
    const HostBatch batch = random_batch(
        {.num_examples = 100, .max_bag = 3, .distinct_ids = distinct, .dim = 4, .num_tables = 1},
        5);
    const std::vector<std::byte> updated = updated_rows(batch, 0.0F, false);
    const std::vector<std::byte> unchanged(updated.size());
    ASSERT_NE(updated, unchanged);
    for_each_schedule([&] {
      EXPECT_EQ(updated_rows(batch, 0.0F, true), updated);
      EXPECT_EQ(updated_rows(batch, 1.0F, true), unchanged);
      EXPECT_EQ(updated_rows(batch, 3.0F, true), unchanged);  // of several ranks
      EXPECT_EQ(updated_rows(batch, std::numeric_limits<float>::quiet_NaN(), true), unchanged);
    });
  }
}

TEST(DeviceBackward, OfAnEmptyBatchCanBeCancelled) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 2;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  batch.offsets = {0, 0, 0};
  EXPECT_EQ(updated_rows(batch, 1.0F, true), updated_rows(batch, 0.0F, false));
}

TEST(DeviceMatrix, KeepsItsMemoryAndGrows) {
  SATRAP_NEEDS_DEVICE();
  backend::DeviceMatrix matrix;
  matrix.resize(device(), 10, 4);
  float* const first = matrix.data();
  matrix.resize(device(), 5, 8);
  EXPECT_EQ(matrix.data(), first);
  const FloatMatrix view = matrix.view();
  EXPECT_EQ(view.rows, 5);
  EXPECT_EQ(view.cols, 8);
  EXPECT_EQ(view.stride, 8);
  EXPECT_EQ(view.place, Place::kDevice);
  EXPECT_EQ(matrix.bytes(), 160);
  matrix.resize(device(), 1000, 8);
  const backend::Stream stream(device());
  device().fill(matrix.data(), 0, matrix.bytes(), stream);
  stream.wait_until_idle();
  matrix.resize(device(), 0, 8);
  EXPECT_EQ(matrix.bytes(), 0);
}

// A host's function reads and writes the memory of a device whose libtorch_gpu() is -1.
TEST(DeviceOrder, OfLibtorchIsThatOfTheStream) {
  SATRAP_NEEDS_DEVICE();
  if (device().libtorch_gpu() >= 0) GTEST_SKIP() << "libtorch computes on the GPU itself";
  for_each_schedule([&] {
    const DeviceArray<float> values(std::vector<float>{0.0F});
    const backend::Stream stream(device()), other(device());
    const std::vector<float> one{1.0F};
    device().copy(values.data(), one.data(), 4, stream);
    device().run_in_order(stream, [&] { *values.data() += 1.0F; });
    backend::Event event(device());
    event.record(stream);
    event.make_wait(other);
    device().run_in_order(other, [&] { *values.data() *= 10.0F; });
    other.wait_until_idle();
    EXPECT_EQ(values.host(), std::vector<float>{20.0F});
  });
}

TEST(DeviceOrder, ErrorsOfLibtorchReachTheCallerOrWhoWaits) {
  SATRAP_NEEDS_DEVICE();
  if (device().libtorch_gpu() >= 0) GTEST_SKIP() << "libtorch computes on the GPU itself";
  const backend::Stream stream(device());
  EXPECT_THROW(
      {
        device().run_in_order(stream, [] { throw std::runtime_error("of libtorch"); });
        stream.wait_until_idle();
      },
      std::runtime_error);
}

}  // namespace
}  // namespace satrap::testing
