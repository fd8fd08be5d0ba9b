#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "satrap/backend/device_plan.h"
#include "tests/backend/backward_oracle.h"

namespace satrap::testing {
namespace {

constexpr float kUnplaced = -123.0F;

void check_backward(const HostBatch& batch, const BackwardCase& c, bool every_schedule = true) {
  Random random(c.seed);
  const RowOptimizer optimizer = optimizer_of(c.optimizer);
  const RowLayout layout = RowLayout::of(batch.dim, c.weights, c.optimizer);
  // Tables differ in learning rate, schedule and seed.
  std::vector<TableStep> steps;
  for (std::int64_t table = 0; table < kMaxTables; ++table) {
    RowOptimizer of_table = optimizer;
    of_table.lr *= static_cast<float>(table % 7 + 1);
    steps.push_back({RowStep(of_table, 0.5 / static_cast<double>(table % 3 + 2), 3),
                     hash64(c.seed, 3, static_cast<std::uint64_t>(table)), 3});
  }
  const HostPlan host = make_host_plan(batch);
  const auto num_unique = static_cast<std::int64_t>(host.tags.size());
  const backend::CacheSize size{num_unique / 32 + 2, 5};
  auto rows = random_rows(layout, size.total_slots(), random);
  const auto slots = random_slots(num_unique, size.total_slots(), c.some_missing, random);
  for (std::size_t u = 0; u < slots.size(); ++u) {
    if (slots[u] < 0) continue;
    const Key key = backend::key_of_tag(host.tags[u]);
    std::memcpy(rows.data() + slots[u] * layout.device_stride + layout.device_header_offset(), &key,
                sizeof(key));
  }
  const auto grad = random_gradient(batch, c.grad, random);

  std::vector<float> grad_floats;
  for (std::int64_t i = 0; i < batch.num_examples * batch.row_stride(); ++i) {
    grad_floats.push_back(get_float(c.grad, grad.data(), i));
  }
  auto expected_rows = rows;
  std::vector<float> expected_gradients;
  // As if the rows were being saved: an update makes them changed again.
  const std::vector<std::uint8_t> marks(static_cast<std::size_t>(size.num_slots()),
                                        backend::kGathered);
  auto expected_marks = marks;
  for (std::size_t u = 0; u < host.tags.size(); ++u) {
    const auto gradient = gradient_of(host.occurrences[u], grad_floats, layout.padded_dim);
    expected_gradients.insert(expected_gradients.end(), gradient.begin(), gradient.end());
    if (slots[u] < 0) continue;
    const auto table = static_cast<std::size_t>(table_of(backend::key_of_tag(host.tags[u])));
    update_on_host(c, layout, steps[table], gradient,
                   expected_rows.data() + slots[u] * layout.device_stride);
    if (slots[u] < size.num_slots())
      expected_marks[static_cast<std::size_t>(slots[u])] = backend::kChanged;
  }

  const DeviceBatch on_device(batch);
  const DeviceArray<std::byte> grad_on_device(grad);
  const DeviceArray<TableStep> steps_on_device(steps);
  const backend::PlanScratch scratch(device(), std::max<std::int64_t>(1, batch.num_ids()), layout);
  const backend::DevicePlan plan(device(), scratch, 0);
  const backend::PlanView view = plan.view(batch.num_ids());
  const DeviceArray<float> gradients(std::max<std::int64_t>(1, num_unique * layout.padded_dim));
  // Every third key has no place; the others are put in the reverse order, into every second
  // vector.
  std::vector<std::int32_t> places;
  std::vector<float> expected_placed(expected_gradients.size() * 2, kUnplaced);
  for (std::int64_t u = 0; u < num_unique; ++u) {
    places.push_back(u % 3 == 1 ? -1 : static_cast<std::int32_t>(2 * (num_unique - 1 - u)));
    if (places.back() < 0) continue;
    std::copy_n(expected_gradients.begin() + u * layout.padded_dim, layout.padded_dim,
                expected_placed.begin() + places.back() * layout.padded_dim);
  }
  const DeviceArray<std::int32_t> places_on_device(places);
  // Places do not depend on the optimizer, and the interpreter is slow.
  const bool is_placed = c.optimizer == RowOptimizerType::kSgd && batch.num_ids() < 5'000;
  const auto check = [&] {
    const backend::Stream stream(device());
    const DeviceArray<float> placed(std::vector<float>(expected_placed.size(), kUnplaced));
    const backend::Cache cache(device(), layout, size, backend::EvictionPolicy::kLru, stream);
    device().build_plan({on_device.bags(), size.num_sets, layout.padded_dim, view}, stream);
    device().copy(view.slots, slots.data(), num_unique * 4, stream);
    device().copy(cache.view().rows, rows.data(), static_cast<std::int64_t>(rows.size()), stream);
    device().copy(cache.view().dirty, marks.data(), size.num_slots(), stream);
    device().backward_gradients(
        {layout, view, c.grad, grad_on_device.data(), nullptr, gradients.data()}, stream);
    if (is_placed) {
      device().backward_gradients(
          {layout, view, c.grad, grad_on_device.data(), places_on_device.data(), placed.data()},
          stream);
    }
    device().backward_update(
        {cache.view(), view, c.grad, grad_on_device.data(), c.optimizer, steps_on_device.data()},
        stream);
    stream.wait_until_idle();
    if (is_placed) {
      ASSERT_EQ(placed.host(), expected_placed);
    }
    const auto sums = download(gradients.data(), num_unique * layout.padded_dim);
    ASSERT_EQ(sums, expected_gradients);
    const auto is_negative = [](float x) { return std::signbit(x); };
    ASSERT_TRUE(std::ranges::equal(sums, expected_gradients, {}, is_negative, is_negative))
        << "the sign of a zero";
    ASSERT_EQ(download(cache.view().dirty, size.num_slots()), expected_marks);
    const auto result = download(cache.view().rows, static_cast<std::int64_t>(rows.size()));
    for (std::int64_t slot = 0; slot < size.total_slots(); ++slot) {
      const auto begin = slot * layout.device_stride;
      ASSERT_EQ(std::memcmp(result.data() + begin, expected_rows.data() + begin,
                            static_cast<std::size_t>(layout.device_stride)),
                0)
          << "row of slot " << slot;
    }
  };
  if (every_schedule) {
    for_each_schedule(check);
  } else {
    check();
  }
}

TEST(DeviceBackward, EveryOptimizerAndDim) {
  SATRAP_NEEDS_DEVICE();
  for (const auto optimizer : kOptimizers) {
    for (const std::int64_t dim : {1, 4, 6, 8, 12, 16, 36, 64, 128, 200, 256, 512, 1000}) {
      SCOPED_TRACE(::testing::Message() << int(optimizer) << " dim " << dim);
      check_backward(random_batch({.num_examples = 5,
                                   .max_bag = 7,
                                   .dim = dim,
                                   .poolings = {Pooling::kSum, Pooling::kMean}},
                                  static_cast<std::uint64_t>(dim)),
                     {.optimizer = optimizer});
    }
  }
}

TEST(DeviceBackward, EveryOptimizerTypeOfWeightsAndDimWithKeysOfSeveralChunks) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim : {4, 16, 64, 256, 1024}) {
    const HostBatch batch = random_batch({.num_examples = 40,
                                          .max_bag = 6,
                                          .distinct_ids = 2,
                                          .dim = dim,
                                          .weighted = true,
                                          .poolings = {Pooling::kMean}},
                                         static_cast<std::uint64_t>(dim));
    for (const auto optimizer : kOptimizers) {
      for (const auto weights : kFloatTypes) {
        SCOPED_TRACE(::testing::Message()
                     << name_of(optimizer) << ' ' << name_of(weights) << " dim " << dim);
        check_backward(batch, {.optimizer = optimizer, .weights = weights});
      }
    }
  }
}

TEST(DeviceBackward, EveryTypeOfWeightsAndGradient) {
  SATRAP_NEEDS_DEVICE();
  for (const auto weights : kFloatTypes) {
    for (const auto grad : kFloatTypes) {
      for (const auto optimizer : {RowOptimizerType::kAdagrad, RowOptimizerType::kRowwiseAdagrad}) {
        SCOPED_TRACE(::testing::Message() << int(weights) << ' ' << int(grad));
        check_backward(random_batch({.num_examples = 6,
                                     .max_bag = 5,
                                     .dim = 20,
                                     .weighted = true,
                                     .poolings = {Pooling::kSqrtN, Pooling::kSequence}},
                                    11),
                       {.optimizer = optimizer, .weights = weights, .grad = grad});
      }
    }
  }
}

TEST(DeviceBackward, KeysWithoutSlotAreLeftOut) {
  SATRAP_NEEDS_DEVICE();
  check_backward(random_batch({.num_examples = 30, .max_bag = 4, .dim = 8}, 5),
                 {.optimizer = RowOptimizerType::kAdam, .some_missing = true});
}

TEST(DeviceBackward, HotKeysAreSummedInChunks) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t distinct : {1, 3}) {
    for (const std::int64_t rows : {63, 64, 65, 129, 700}) {
      SCOPED_TRACE(::testing::Message() << distinct << " keys in " << rows << " rows");
      check_backward(random_batch({.num_examples = rows,
                                   .max_bag = 3,
                                   .distinct_ids = distinct,
                                   .dim = 12,
                                   .num_tables = 1},
                                  static_cast<std::uint64_t>(rows)),
                     {.optimizer = RowOptimizerType::kAdagrad});
    }
  }
}

TEST(DeviceBackward, AKeyOfWholeChunksIsSummedToItsEnd) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t count : {kSumChunk - 1, kSumChunk, kSumChunk + 1, 2 * kSumChunk}) {
    check_backward(one_key(count, 12), {.optimizer = RowOptimizerType::kAdagrad});
  }
}

// Kernels are compiled for 1, 2, 4 and 8 quads of a row per lane.
constexpr std::int64_t kDimOfEachNumberOfQuads[] = {64, 200, 400, 1000};

TEST(DeviceBackward, EveryOptimizerTypeOfGradientAndNumberOfQuads) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim : kDimOfEachNumberOfQuads) {
    HostBatch batch = one_key(kSumChunk + 2, dim);
    batch.keys[1] = make_key(TableId{2}, 77);  // a short segment beside the long one
    for (const auto grad : kFloatTypes) {
      for (const auto optimizer : kOptimizers) {
        SCOPED_TRACE(::testing::Message()
                     << name_of(optimizer) << ' ' << name_of(grad) << " dim " << dim);
        check_backward(batch, {.optimizer = optimizer, .grad = grad}, false);
      }
    }
  }
}

TEST(DeviceBackward, GroupsOfChunksOfEveryNumberOfQuads) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim : kDimOfEachNumberOfQuads) {
    check_backward(one_key(kSumChunk * kSumChunk + 1, dim), {}, false);
  }
}

TEST(DeviceBackward, TheHottestKeyIsSummedInGroups) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 100;
  batch.dim = 4;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  for (std::int64_t row = 0; row < batch.num_examples; ++row) {
    for (std::int64_t i = 0; i < 101; ++i) {
      batch.keys.push_back(make_key(TableId{}, static_cast<std::uint64_t>(i % 50 == 3 ? i : 0)));
    }
    batch.offsets.push_back(batch.num_ids());
  }
  for (const auto optimizer : {RowOptimizerType::kSgd, RowOptimizerType::kRowwiseAdagrad}) {
    check_backward(batch, {.optimizer = optimizer});
  }
}

TEST(DeviceBackward, AKeyThatOccursAHundredThousandTimes) {
  SATRAP_NEEDS_DEVICE();
  // 1900 chunks in 30 groups: no thread sums more than kSumChunk vectors.
  HostBatch batch;
  batch.num_examples = 122;
  batch.dim = 8;
  batch.poolings = {Pooling::kSqrtN};
  batch.max_lengths = {1};
  const Key hot = make_key(TableId{1}, 5);
  for (std::int64_t row = 0; row < batch.num_examples; ++row) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      batch.keys.push_back(i % 333 == 0 ? make_key(TableId{}, i) : hot);
    }
    batch.offsets.push_back(batch.num_ids());
  }
  ASSERT_GT(std::count(batch.keys.begin(), batch.keys.end(), hot), 100'000);
  check_backward(batch, {.optimizer = RowOptimizerType::kAdagrad, .grad = FloatType::kBf16});
  for (const auto optimizer : kOptimizers) check_backward(batch, {.optimizer = optimizer}, false);
  for (const auto weights : {FloatType::kBf16, FloatType::kFp16}) {
    check_backward(batch, {.optimizer = RowOptimizerType::kAdam, .weights = weights}, false);
  }
}

TEST(DeviceBackward, EveryDegreeOfDuplicates) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t percent : kDuplicatePercents) {
    SCOPED_TRACE(percent);
    check_backward(batch_with_duplicates(3989, percent, 12, static_cast<std::uint64_t>(percent)),
                   {.optimizer = RowOptimizerType::kAdam, .some_missing = percent < 50});
  }
}

TEST(DeviceBackward, ASumThatIsMinusZeroStaysSo) {
  SATRAP_NEEDS_DEVICE();
  check_backward(batch_of_zero_sums(), {});
}

TEST(DeviceBackward, EmptyBatchChangesNothing) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 2;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  batch.offsets = {0, 0, 0};
  check_backward(batch, {});
}

TEST(DeviceBackward, StochasticRoundingKeepsTheMean) {
  SATRAP_NEEDS_DEVICE();
  // A step of a hundredth of the distance between two bf16 numbers: with rounding to nearest,
  // nothing would ever change.
  const RowLayout layout = RowLayout::of(1024, FloatType::kBf16, RowOptimizerType::kSgd);
  HostBatch batch;
  batch.num_examples = 1;
  batch.dim = 1024;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  batch.keys = {make_key(TableId{}, 1)};
  batch.offsets = {0, 1};
  RowOptimizer optimizer;
  optimizer.type = RowOptimizerType::kSgd;
  optimizer.lr = 0x1.0p-7F / 100;
  const backend::Stream stream(device());
  const backend::CacheSize size{1, 1};
  const backend::Cache cache(device(), layout, size, backend::EvictionPolicy::kLru, stream);
  const backend::PlanScratch scratch(device(), 1, layout);
  const backend::DevicePlan plan(device(), scratch, 0);
  const DeviceBatch on_device(batch);
  const DeviceArray<float> grad(
      std::vector<float>(static_cast<std::size_t>(batch.row_stride()), -1.0F));
  std::vector<std::byte> ones(static_cast<std::size_t>(layout.device_stride));
  for (std::int64_t d = 0; d < 1024; ++d) put_float(FloatType::kBf16, ones.data(), d, 1.0F);
  const std::vector<std::int32_t> slots{0};
  const int kSteps = 50;
  upload(ones, cache.view().rows);
  device().build_plan({on_device.bags(), 1, 1024, plan.view(1)}, stream);
  stream.wait_until_idle();
  upload(slots, plan.view(1).slots);
  for (int t = 1; t <= kSteps; ++t) {
    const DeviceArray<TableStep> steps(std::vector<TableStep>{
        {RowStep(optimizer, 1.0, t), hash64(7, static_cast<std::uint64_t>(t)),
         static_cast<std::uint32_t>(t)}});
    device().backward_update({cache.view(), plan.view(1), FloatType::kFp32, grad.data(),
                              RowOptimizerType::kSgd, steps.data()},
                             stream);
    stream.wait_until_idle();
  }
  const auto row = download(cache.view().rows, layout.device_stride);
  double mean = 0.0;
  for (std::int64_t d = 0; d < 1024; ++d) {
    mean += static_cast<double>(get_float(FloatType::kBf16, row.data(), d)) / 1024;
  }
  // 50 steps of a hundredth: half of the distance up. Standard error of the mean: about 0.0001.
  EXPECT_NEAR(mean, 1.0 + 0.5 * 0x1.0p-7, 0.0005);
}

}  // namespace
}  // namespace satrap::testing
