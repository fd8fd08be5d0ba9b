// A network in a device's memory beside the same one in the host's.

#include <algorithm>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "satrap/backend/device_matrix.h"
#include "src/dense/field_columns.h"
#include "tests/dense/network_fixture.h"
#include "tests/support/device/device.h"

namespace satrap::dense {
namespace {

using satrap::testing::device;
using satrap::testing::for_each_schedule;

/// Models whose fields have all kinds of widths, with dropout where they take it.
std::vector<ModelCase> cases() {
  std::vector<ModelCase> models = all_models(), all;
  models.push_back(models_of_experts().front());
  for (ModelCase c : models) {
    c.model.engine = job::Engine::kGraph;
    if (has_mlp(c) && c.model.activation != job::Activation::kNone) c.model.dropout = 0.3;
    for (const std::int64_t width : c.shape.field_widths) {
      c.shape.device_columns.push_back(c.shape.device_width);
      c.shape.device_width += (width + 3) / 4 * 4;
    }
    all.push_back(c);
  }
  return all;
}

/// Adam makes a step of the learning rate of whatever noise is the gradient of a bias that batch
/// normalisation takes away again.
job::DenseOptimizerConfig optimizer_for(const ModelCase& c) {
  return c.model.batch_norm ? optimizer_of(DenseOptimizerType::kSgd, 0.01)
                            : job::DenseOptimizerConfig{};
}

std::unique_ptr<DenseNetwork> make(const ModelCase& c,
                                   ThreadPool& pool,
                                   const DensePlace* place,
                                   Precision precision,
                                   const job::DenseOptimizerConfig& optimizer) {
  return DenseNetwork::create(c.model, optimizer, precision, c.shape, 7, pool, place);
}
std::unique_ptr<DenseNetwork> make(const ModelCase& c, ThreadPool& pool, const DensePlace* place) {
  return make(c, pool, place, Precision::kFp32, optimizer_for(c));
}

/// Bits, but for a GPU, whose sums have another order.
void expect_same(const std::vector<float>& found, const std::vector<float>& wanted) {
  if (device().libtorch_gpu() < 0) {
    ASSERT_EQ(found, wanted);
    return;
  }
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-3) << i;
}
void expect_same(const Snapshot& found, const Snapshot& wanted) {
  for (const auto& [name, values] : wanted) {
    SCOPED_TRACE(name);
    expect_same(found.at(name), values);
  }
}

/// A batch whose pooled rows, their gradient and the flag are in the device's memory.
class BatchOnDevice {
 public:
  BatchOnDevice(const ModelCase& c, Batch& batch, const backend::Stream& stream)
      : batch_(batch), columns_(c.shape), stream_(stream) {
    const std::int64_t width = columns_.device_width();
    pooled_.resize(device(), batch.rows, width);
    gradient_.resize(device(), batch.rows, width);
    flag_.resize(device(), 1, 1);
    load();
  }

  /// The values that the batch has now, into the same memory.
  void load() {
    std::vector<float> wide(static_cast<std::size_t>(batch_.rows * columns_.device_width()));
    columns_.to_device({batch_.pooled.data(), batch_.rows, columns_.host_width()}, wide.data());
    device().copy(pooled_.data(), wide.data(), pooled_.bytes(), stream_);
    device().fill(gradient_.data(), 0x11, gradient_.bytes(), stream_);
    stream_.wait_until_idle();
  }

  void begin(DenseNetwork& network, std::int64_t step) {
    DenseInput input = batch_.input(step);
    input.pooled = pooled_.view();
    DenseOutput output = batch_.output();
    output.grad_pooled = gradient_.view();
    network.forward_backward(input, output);
    network.copy_flag(flag_.data(), Place::kDevice);
  }

  /// In the host's columns; padding is checked to be 0.
  std::vector<float> gradient() const {
    std::vector<float> wide = satrap::testing::download(
        gradient_.data(), gradient_.bytes() / static_cast<std::int64_t>(sizeof(float)));
    std::vector<float> narrow(batch_.pooled.size()), again(wide.size());
    columns_.to_host(wide.data(), {narrow.data(), batch_.rows, columns_.host_width()});
    columns_.to_device({narrow.data(), batch_.rows, columns_.host_width()}, again.data());
    EXPECT_EQ(wide, again);
    return narrow;
  }
  float flag() const { return satrap::testing::download(flag_.data(), 1).front(); }

 private:
  Batch& batch_;
  const FieldColumns columns_;
  const backend::Stream& stream_;
  backend::DeviceMatrix pooled_, gradient_, flag_;
};

class DeviceNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override { SATRAP_NEEDS_DEVICE(); }
  ThreadPool pool_{2};
};

TEST_F(DeviceNetworkTest, TakesBatchesOfTheHost) {
  for (const ModelCase& c : cases()) {
    SCOPED_TRACE(c.name);
    for_each_schedule([&] {
      const backend::Stream stream(device());
      const DensePlace place{device(), stream};
      const auto here = make(c, pool_, nullptr), there = make(c, pool_, &place);
      for (std::int64_t step = 1; step <= 3; ++step) {
        Batch batch(c.shape, 20 + 3 * step, static_cast<std::uint64_t>(step));
        Batch other = batch;
        const double loss = batch.run(*here, step).loss;
        EXPECT_NEAR(other.run(*there, step).loss, loss, 1e-5);
        expect_same(other.probabilities, batch.probabilities);
        expect_same(other.grad_pooled, batch.grad_pooled);
        here->apply(step);
        there->apply(step);
      }
      expect_same(snapshot(*there), snapshot(*here));
      Batch batch(c.shape, 9, 9), other(c.shape, 9, 9);
      batch.predict(*here);
      other.predict(*there);
      expect_same(other.probabilities, batch.probabilities);
    });
  }
}

TEST_F(DeviceNetworkTest, ReadsAndWritesPooledRowsInItsMemory) {
  for (const ModelCase& c : cases()) {
    SCOPED_TRACE(c.name);
    for_each_schedule([&] {
      const backend::Stream stream(device());
      const DensePlace place{device(), stream};
      const auto here = make(c, pool_, nullptr), there = make(c, pool_, &place);
      for (std::int64_t step = 1; step <= 3; ++step) {
        Batch batch(c.shape, 20, static_cast<std::uint64_t>(step));
        Batch other = batch;
        batch.run(*here, step);
        BatchOnDevice on_device(c, other, stream);
        on_device.begin(*there, step);
        here->apply(step);
        there->apply(step);
        EXPECT_TRUE(there->finish().finite);
        expect_same(other.probabilities, batch.probabilities);
        expect_same(on_device.gradient(), batch.grad_pooled);
        EXPECT_EQ(on_device.flag(), 0.0F);
      }
      expect_same(snapshot(*there), snapshot(*here));
    });
  }
}

// From the third on, a step in the same memory is the recording of an earlier one, with other
// values, other dropout and another learning rate.
TEST_F(DeviceNetworkTest, RecordedStepsAreThoseOfTheHost) {
  job::DenseOptimizerConfig optimizer = optimizer_of(DenseOptimizerType::kSgd, 0.01);
  optimizer.schedule.warmup_steps = 5;
  const auto check = [&](const ModelCase& c, Precision precision) {
    SCOPED_TRACE(c.name);
    for_each_schedule([&] {
      const backend::Stream stream(device());
      const DensePlace place{device(), stream};
      const auto here = make(c, pool_, nullptr, precision, optimizer);
      const auto there = make(c, pool_, &place, precision, optimizer);
      Batch other(c.shape, 20, 1);
      BatchOnDevice on_device(c, other, stream);
      for (std::int64_t step = 1; step <= 6; ++step) {
        Batch batch(c.shape, 20, static_cast<std::uint64_t>(step));
        other = batch;
        on_device.load();
        const DenseResult wanted = batch.run(*here, step);
        on_device.begin(*there, step);
        here->apply(step);
        there->apply(step);
        const DenseResult found = there->finish();
        EXPECT_NEAR(found.loss, wanted.loss, 1e-5);
        EXPECT_EQ(found.finite, wanted.finite);
        expect_same(other.probabilities, batch.probabilities);
        if (wanted.finite) expect_same(on_device.gradient(), batch.grad_pooled);
      }
      expect_same(snapshot(*there), snapshot(*here));
    });
  };
  for (const ModelCase& c : cases()) check(c, Precision::kFp32);
  check(cases().at(1), Precision::kFp16);
}

TEST_F(DeviceNetworkTest, StepsFollowEachOtherBeforeTheFirstIsFinished) {
  const ModelCase c = cases().at(1);
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const DensePlace place{device(), stream};
    const auto here = make(c, pool_, nullptr), there = make(c, pool_, &place);
    std::vector<Batch> batches, others;
    std::vector<double> losses;
    for (std::int64_t step = 1; step <= 7; ++step) {
      batches.emplace_back(c.shape, 10 + step, static_cast<std::uint64_t>(step));
      others.push_back(batches.back());
      losses.push_back(batches.back().run(*here, step).loss);
      here->apply(step);
    }
    std::vector<std::unique_ptr<BatchOnDevice>> on_device;
    for (Batch& other : others) {
      on_device.push_back(std::make_unique<BatchOnDevice>(c, other, stream));
    }
    const std::int64_t lag = there->max_in_flight() - 1;
    for (std::int64_t step = 1; step <= 7 + lag; ++step) {
      if (step <= 7) {
        on_device[static_cast<std::size_t>(step - 1)]->begin(*there, step);
        there->apply(step);
      }
      if (step <= lag) continue;
      const auto finished = static_cast<std::size_t>(step - lag - 1);
      EXPECT_NEAR(there->finish().loss, losses[finished], 1e-5);
      expect_same(others[finished].probabilities, batches[finished].probabilities);
    }
    expect_same(snapshot(*there), snapshot(*here));
  });
}

TEST_F(DeviceNetworkTest, ResultsThatNobodyTakesAreLost) {
  const ModelCase c = cases().at(1);
  const backend::Stream stream(device());
  const DensePlace place{device(), stream};
  const auto network = make(c, pool_, &place), other = make(c, pool_, &place);
  for (std::int64_t step = 1; step <= 9; ++step) {
    Batch batch(c.shape, 10, static_cast<std::uint64_t>(step));
    network->forward_backward(batch.input(step), batch.output());
    network->apply(step);
    batch.run(*other, step);
    other->apply(step);
  }
  EXPECT_EQ(snapshot(*network), snapshot(*other));
}

TEST_F(DeviceNetworkTest, AStepThatIsNotFiniteIsTold) {
  const ModelCase c = cases().at(1);
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const DensePlace place{device(), stream};
    const auto network = make(c, pool_, &place);
    const Snapshot before = snapshot(*network);
    Batch broken(c.shape, 10, 1);
    broken.numeric[3] = std::numeric_limits<float>::infinity();
    BatchOnDevice on_device(c, broken, stream);
    on_device.begin(*network, 1);
    network->apply(1);
    EXPECT_FALSE(network->finish().finite);
    EXPECT_NE(on_device.flag(), 0.0F);
    EXPECT_EQ(snapshot(*network), before);
  });
}

// The host only queues steps; which of them overflow, and the scale of the next, it learns later.
TEST_F(DeviceNetworkTest, InFp16TheScaleChangesOnTheDevice) {
  const ModelCase c = cases().at(1);
  const auto start = [](DenseNetwork& network) {
    Snapshot state = snapshot(network);
    state.at(DenseNetwork::kLossScaleTensor) = {0x1p24F, 0, 0};
    restore(network, state);
  };
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const DensePlace place{device(), stream};
    const auto optimizer = optimizer_of(DenseOptimizerType::kSgd, 0.01);
    const auto here = make(c, pool_, nullptr, Precision::kFp16, optimizer);
    const auto there = make(c, pool_, &place, Precision::kFp16, optimizer);
    start(*here);
    start(*there);
    std::vector<Batch> batches, others;
    std::vector<bool> overflowed;
    for (std::int64_t step = 1; step <= 14; ++step) {
      batches.emplace_back(c.shape, 10 + step, static_cast<std::uint64_t>(step));
      others.push_back(batches.back());
      const DenseResult result = batches.back().run(*here, step);
      EXPECT_EQ(result.finite, !result.overflowed);
      overflowed.push_back(result.overflowed);
      here->apply(step);
    }
    EXPECT_TRUE(overflowed.front());
    EXPECT_FALSE(overflowed.back());
    const std::int64_t lag = there->max_in_flight() - 1;
    std::vector<std::unique_ptr<BatchOnDevice>> on_device;
    for (Batch& other : others) {
      on_device.push_back(std::make_unique<BatchOnDevice>(c, other, stream));
    }
    for (std::int64_t step = 1; step <= 14 + lag; ++step) {
      if (step <= 14) {
        on_device[static_cast<std::size_t>(step - 1)]->begin(*there, step);
        there->apply(step);
      }
      if (step <= lag) continue;
      const auto finished = static_cast<std::size_t>(step - lag - 1);
      const DenseResult result = there->finish();
      EXPECT_EQ(result.overflowed, overflowed[finished]) << finished;
      EXPECT_EQ(result.finite, !overflowed[finished]) << finished;
    }
    expect_same(snapshot(*there), snapshot(*here));
    EXPECT_EQ(there->loss_scale()->factor, here->loss_scale()->factor);
    EXPECT_EQ(there->loss_scale()->skipped_steps, std::ranges::count(overflowed, true));
  });
}

// As ranks do that sum the gradient in the host's memory.
TEST_F(DeviceNetworkTest, TheHostMayChangeTheGradient) {
  const ModelCase c = cases().at(1);
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const DensePlace place{device(), stream};
    const auto here = make(c, pool_, nullptr), there = make(c, pool_, &place);
    for (std::int64_t step = 1; step <= 3; ++step) {
      for (DenseNetwork* const network : {here.get(), there.get()}) {
        Batch batch(c.shape, 10, static_cast<std::uint64_t>(step));
        network->forward_backward(batch.input(step), batch.output(), [](std::int64_t) {});
        for (float& value : network->gradient()) value *= 2.0F;
        if (step == 2) network->flag_and_first_bucket()[0] = 1.0F;
        float flag = -1.0F;
        network->copy_flag(&flag, Place::kHost);
        EXPECT_EQ(flag, step == 2 ? 1.0F : 0.0F);
        network->apply(step);
        EXPECT_EQ(network->finish().finite, step != 2);
      }
    }
    expect_same(snapshot(*there), snapshot(*here));
  });
}

TEST_F(DeviceNetworkTest, StateComesAndGoes) {
  const ModelCase c = cases().at(1);
  const backend::Stream stream(device());
  const DensePlace place{device(), stream};
  const auto trained = make(c, pool_, &place), loaded = make(c, pool_, &place);
  for (std::int64_t step = 1; step <= 2; ++step) {
    Batch(c.shape, 10, static_cast<std::uint64_t>(step)).run(*trained, step);
    trained->apply(step);
  }
  restore(*loaded, snapshot(*trained));
  EXPECT_EQ(snapshot(*loaded), snapshot(*trained));
  EXPECT_EQ(loaded->to_torchscript(), trained->to_torchscript());
  for (const auto& network : {trained.get(), loaded.get()}) {
    Batch(c.shape, 10, 3).run(*network, 3);
    network->apply(3);
  }
  EXPECT_EQ(snapshot(*loaded), snapshot(*trained));
  const DenseNetwork::TrainingState state = trained->save_training_state();
  const auto other = make(c, pool_, &place);
  other->load_training_state(state);
  EXPECT_EQ(other->save_training_state().first, state.first);
  std::vector<float> values(state.parameters.size(), 0.5F);
  other->load_parameters(values);
  EXPECT_EQ(other->save_training_state().parameters, values);
  EXPECT_EQ(other->save_training_state().first, state.first);
}

}  // namespace
}  // namespace satrap::dense
