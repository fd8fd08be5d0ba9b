#include "satrap/pipeline/pooled_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/pipeline/work.h"

namespace satrap::pipeline {
namespace {

using testing::ElementsAre;

/// Two examples with two numbers each, and a layout of one bag (dim 2) and, optionally, one
/// sequence of up to two ids.
class PooledBatchTest : public testing::Test {
 protected:
  PooledBatchTest() {
    batch_.num_examples = 2;
    batch_.num_numeric = 2;
    batch_.numeric = {1, 2, 3, 4};
  }

  static embedding::FeatureLayout layout(bool with_sequence) {
    table::TableSpec table;
    table.dim = 2;
    std::vector<job::FeatureSpec> features = {{.name = "bag", .table = TableId{0}}};
    if (with_sequence) {
      features.push_back(
          {.name = "history", .table = TableId{0}, .pooling = Pooling::kSequence, .max_length = 2});
    }
    return {features, {table}};
  }

  static std::vector<float> values_of(const ConstFloatMatrix& matrix) {
    const float* values = host_values(matrix, matrix.rows, matrix.cols, "a matrix");
    std::vector<float> all;
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      all.insert(all.end(), values + r * matrix.stride, values + r * matrix.stride + matrix.cols);
    }
    return all;
  }

  data::Batch batch_;
  PooledBatch inputs_;
};

TEST_F(PooledBatchTest, WithoutSequencesTheNumbersAreTheBatchesOwn) {
  inputs_.begin(batch_, layout(false));
  EXPECT_EQ(inputs_.numeric().data, batch_.numeric.data());
  EXPECT_EQ(inputs_.pooled().rows, 2);
  EXPECT_EQ(inputs_.pooled().cols, 2);
  EXPECT_EQ(inputs_.mask().cols, 0);
  EXPECT_TRUE(inputs_.mask_values().empty());
}

TEST_F(PooledBatchTest, TheMaskIsWrittenWhereTheNetworkReadsIt) {
  inputs_.begin(batch_, layout(true));
  const FloatMatrix mask = inputs_.mask();
  float* values = host_values(mask, 2, 2, "mask");
  values[0] = 1.0F;
  values[1] = 0.0F;
  values[mask.stride] = 1.0F;
  values[mask.stride + 1] = 1.0F;
  EXPECT_THAT(values_of(inputs_.numeric()), ElementsAre(1, 2, 1, 0, 3, 4, 1, 1));
  EXPECT_THAT(inputs_.mask_values(), ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(inputs_.pooled().cols, 6);
}

TEST_F(PooledBatchTest, ARestoredLookupIsTheOneThatWasSaved) {
  inputs_.begin(batch_, layout(true));
  inputs_.restore({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 0, 1, 1});
  const std::vector<float> pooled = inputs_.pooled_values(), mask = inputs_.mask_values();
  PooledBatch again;
  again.begin(batch_, layout(true));
  again.restore(pooled, mask);
  EXPECT_EQ(values_of(again.numeric()), values_of(inputs_.numeric()));
  EXPECT_EQ(again.pooled_values(), pooled);
}

TEST_F(PooledBatchTest, ALookupOfAnotherShapeIsRefused) {
  inputs_.begin(batch_, layout(true));
  EXPECT_THROW(inputs_.restore({1, 2}, {1, 0, 1, 1}), Error);
  EXPECT_THROW(inputs_.restore(inputs_.pooled_values(), {1}), Error);
}

TEST_F(PooledBatchTest, ABatchWithoutExamplesHasMatricesWithoutRows) {
  batch_ = {};
  batch_.num_numeric = 2;
  inputs_.begin(batch_, layout(true));
  EXPECT_EQ(inputs_.pooled().rows, 0);
  EXPECT_EQ(inputs_.numeric().rows, 0);
  EXPECT_TRUE(inputs_.mask_values().empty());
}

/// Pooled rows in a device's memory, where every vector has a multiple of 4 columns.
class PooledBatchOnDeviceTest : public PooledBatchTest {
 protected:
  static embedding::FeatureLayout device_layout() {
    table::TableSpec table;
    table.dim = 2;
    return {
        {{.name = "bag", .table = TableId{0}},
         {.name = "history", .table = TableId{0}, .pooling = Pooling::kSequence, .max_length = 2}},
        {table},
        embedding::FeatureLayout::kDeviceColumns};
  }

  ThreadPool pool_{1};
  const std::unique_ptr<backend::Device> device_ = backend::make_host_device();
  const backend::Stream stream_{*device_};
  const embedding::FeatureLayout on_host_ = layout(true), on_device_ = device_layout();
  const embedding::DeviceRows rows_{*device_, stream_, on_device_, pool_};
  PooledBatch there_;
};

TEST_F(PooledBatchOnDeviceTest, HasTheDevicesColumns) {
  there_.begin(batch_, on_host_, &rows_);
  const FloatMatrix pooled = there_.pooled();
  EXPECT_EQ(pooled.place, Place::kDevice);
  EXPECT_EQ(pooled.rows, 2);
  EXPECT_EQ(pooled.cols, 12);
  EXPECT_EQ(pooled.stride, 12);
  EXPECT_EQ(there_.mask().cols, 2);
}

TEST_F(PooledBatchOnDeviceTest, IsSavedAndRestoredInTheHostsColumns) {
  there_.begin(batch_, on_host_, &rows_);
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  there_.restore(values, {1, 0, 1, 1});
  const FloatMatrix pooled = there_.pooled();
  const auto* const there = static_cast<const float*>(pooled.data);
  EXPECT_THAT(std::vector<float>(there, there + 12),
              ElementsAre(1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0));
  EXPECT_EQ(there_.pooled_values(), values);
  EXPECT_THAT(there_.mask_values(), ElementsAre(1, 0, 1, 1));
  EXPECT_THROW(there_.restore({1, 2}, {1, 0, 1, 1}), Error);
}

TEST_F(PooledBatchOnDeviceTest, TheWorksGradientAndFlagAreThereToo) {
  Work work;
  work.batch = batch_;
  work.inputs.begin(work.batch, on_host_, &rows_);
  work.begin_outputs(&rows_);
  EXPECT_EQ(work.gradient().place, Place::kDevice);
  EXPECT_EQ(work.gradient().cols, 12);
  EXPECT_EQ(work.skip().place, Place::kDevice);
  EXPECT_EQ(work.skip().value, work.flag());
  work.inputs.begin(work.batch, on_host_);
  work.begin_outputs(nullptr);
  EXPECT_EQ(work.gradient().place, Place::kHost);
  EXPECT_EQ(work.gradient().cols, 6);
  EXPECT_EQ(work.skip().place, Place::kHost);
  EXPECT_EQ(work.skip().value, &work.nonfinite);
}

}  // namespace
}  // namespace satrap::pipeline
