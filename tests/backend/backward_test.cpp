#include <algorithm>

#include <gtest/gtest.h>

#include "satrap/backend/plan.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "tests/backend/host_rows.h"

namespace satrap::testing {
namespace {

using backend::BagPooling;
using backend::FloatType;
using backend::kChunk;
using backend::RowLayout;

struct Case {
  RowOptimizerType optimizer = RowOptimizerType::kSgd;
  FloatType weights = FloatType::kFloat32, grad = FloatType::kFloat32;
  bool stochastic = false;
  bool some_missing = false;
  std::uint64_t seed = 1;
};

RowOptimizer optimizer_of(RowOptimizerType type) {
  RowOptimizer optimizer;
  optimizer.type = type;
  optimizer.lr = 0.1F;
  optimizer.weight_decay = 0.01F;
  optimizer.ftrl_l1 = 0.02F;
  optimizer.ftrl_l2 = 0.1F;
  return optimizer;
}

std::vector<float> added(std::vector<float> sum, const std::vector<float>& other) {
  for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += other[d];
  return sum;
}

/// Adds up vectors in order.
std::vector<float> add_up(const std::vector<std::vector<float>>& vectors) {
  std::vector<float> sum = vectors.at(0);
  for (std::size_t i = 1; i < vectors.size(); ++i) sum = added(sum, vectors[i]);
  return sum;
}

/// The gradient of a key in the documented order, chunks summed by the CPU's reduce_segment.
std::vector<float> gradient_of(const std::vector<HostPlan::Occurrence>& occurrences,
                               const std::vector<float>& grad,
                               std::int64_t dim) {
  std::vector<std::vector<float>> chunks;
  const auto n = static_cast<std::int64_t>(occurrences.size());
  std::vector<std::uint32_t> offsets;
  std::vector<float> coefficients;
  for (const auto& occurrence : occurrences) {
    offsets.push_back(static_cast<std::uint32_t>(occurrence.target));
    coefficients.push_back(occurrence.coefficient);
  }
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    std::vector<float> sum(static_cast<std::size_t>(dim));
    reduce_segment(grad.data(), offsets.data(), coefficients.data(), begin,
                   std::min(n, begin + kChunk), n, sum.data(), dim);
    chunks.push_back(sum);
  }
  if (static_cast<std::int64_t>(chunks.size()) <= kChunk) return add_up(chunks);
  std::vector<std::vector<float>> groups;
  for (std::size_t begin = 0; begin < chunks.size(); begin += kChunk) {
    const std::size_t end = std::min(chunks.size(), begin + static_cast<std::size_t>(kChunk));
    groups.push_back(add_up({chunks.begin() + static_cast<std::ptrdiff_t>(begin),
                             chunks.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  return add_up(groups);
}

float rounded_weight(const Case& c,
                     std::uint64_t seed,
                     std::uint64_t tag,
                     std::int64_t d,
                     float x) {
  if (c.weights == FloatType::kFloat32) return x;
  if (!c.stochastic) return round_nearest(small_float(c.weights), x);
  const RandomStream random{hash64(seed, static_cast<std::uint64_t>(backend::key_of_tag(tag)))};
  const std::uint64_t bits =
      random.bits(static_cast<std::uint64_t>(d / 4)) >> (16 * (d % 4)) & 0xFFFF;
  const double draw = c.weights == FloatType::kBFloat16 ? static_cast<double>(bits) / 65536
                                                        : static_cast<double>(bits & 0x1FFF) / 8192;
  return round_stochastic(small_float(c.weights), x, draw);
}

/// One row's update by the CPU's update_row.
void update_on_host(const Case& c,
                    const RowLayout& layout,
                    const RowStep& step,
                    std::uint64_t seed,
                    std::uint64_t tag,
                    const std::vector<float>& grad,
                    std::byte* row) {
  const std::int64_t dim = layout.dim;
  std::vector<float> weights(static_cast<std::size_t>(dim));
  for (std::int64_t d = 0; d < dim; ++d) {
    weights[static_cast<std::size_t>(d)] = get_float(layout.weight_type, row, d);
  }
  auto* state = reinterpret_cast<float*>(row + layout.state_offset_bytes);
  std::vector<float> packed;  // state without padding
  const bool per_element = layout.state_floats > 1 || layout.padded_dim == layout.state_floats;
  for (std::int64_t i = 0; i < layout.state_floats; ++i) {
    if (!per_element || i % layout.padded_dim < dim) packed.push_back(state[i]);
  }
  with_optimizer(c.optimizer, [&](auto type) {
    update_row<type()>(step, weights.data(), packed.data(), grad.data(), dim);
  });
  std::size_t next = 0;
  for (std::int64_t i = 0; i < layout.state_floats; ++i) {
    if (!per_element || i % layout.padded_dim < dim) state[i] = packed[next++];
  }
  for (std::int64_t d = 0; d < dim; ++d) {
    put_float(layout.weight_type, row, d,
              rounded_weight(c, seed, tag, d, weights[static_cast<std::size_t>(d)]));
  }
}

/// Gradients of the type for all of the output, zero in the padding of vectors.
std::vector<std::byte> random_gradient(const HostBatch& batch, FloatType type, Random& random) {
  auto grad = random_floats(type, batch.num_rows * batch.row_stride(), random);
  for (std::int64_t i = 0; i < batch.num_rows * batch.row_stride(); ++i) {
    const std::int64_t d = (i % batch.row_stride() - 4) % batch.padded_dim();
    if (d < 0 || d >= batch.dim) put_float(type, grad.data(), i, 0.0F);
  }
  return grad;
}

void check_backward(const HostBatch& batch, const Case& c) {
  Random random(c.seed);
  const RowOptimizer optimizer = optimizer_of(c.optimizer);
  const RowLayout layout = RowLayout::of(batch.dim, c.weights, optimizer);
  const RowStep step(optimizer, 0.5, 3);
  const backend::Rounding rounding{c.stochastic, hash64(c.seed, 3)};
  const HostPlan host = make_host_plan(batch);
  const auto num_unique = static_cast<std::int64_t>(host.tags.size());
  const backend::CacheSize size{num_unique / 32 + 2, 5};
  const auto rows = random_rows(layout, size.total_slots(), random);
  const auto slots = random_slots(num_unique, size.total_slots(), c.some_missing, random);
  const auto grad = random_gradient(batch, c.grad, random);

  std::vector<float> grad_floats;
  for (std::int64_t i = 0; i < batch.num_rows * batch.row_stride(); ++i) {
    grad_floats.push_back(get_float(c.grad, grad.data(), i));
  }
  auto expected_rows = rows;
  std::vector<float> expected_gradients;
  std::vector<std::uint8_t> expected_dirty(static_cast<std::size_t>(size.num_slots()));
  for (std::size_t u = 0; u < host.tags.size(); ++u) {
    const auto gradient = gradient_of(host.occurrences[u], grad_floats, layout.padded_dim);
    expected_gradients.insert(expected_gradients.end(), gradient.begin(), gradient.end());
    if (slots[u] < 0) continue;
    update_on_host(c, layout, step, rounding.seed, host.tags[u], gradient,
                   expected_rows.data() + slots[u] * layout.stride_bytes);
    if (slots[u] < size.num_slots()) expected_dirty[static_cast<std::size_t>(slots[u])] = 1;
  }

  const DeviceBatch on_device(batch);
  const DeviceArray<std::byte> grad_on_device(grad);
  const backend::Plan plan(std::max<std::int64_t>(1, batch.num_ids()), layout, 0);
  const backend::PlanView view = plan.view(batch.num_ids());
  const DeviceArray<float> gradients(std::max<std::int64_t>(1, num_unique * layout.padded_dim));
  for_each_schedule([&] {
    const backend::Stream stream;
    const backend::Cache cache(layout, size, backend::EvictionPolicy::kLru, stream);
    backend::build_plan(on_device.bags(), size.num_sets, layout.padded_dim, view, stream);
    backend::copy(view.slots, slots.data(), num_unique * 4, stream);
    backend::copy(cache.view().rows, rows.data(), static_cast<std::int64_t>(rows.size()), stream);
    backend::backward_gradients(layout, view, c.grad, grad_on_device.data(), gradients.data(),
                                stream);
    backend::backward_update(cache.view(), view, c.grad, grad_on_device.data(), c.optimizer, step,
                             rounding, stream);
    stream.wait_until_idle();
    ASSERT_EQ(download(gradients.data(), num_unique * layout.padded_dim), expected_gradients);
    ASSERT_EQ(download(cache.view().dirty, size.num_slots()), expected_dirty);
    const auto result = download(cache.view().rows, static_cast<std::int64_t>(rows.size()));
    for (std::int64_t slot = 0; slot < size.total_slots(); ++slot) {
      const auto begin = slot * layout.stride_bytes;
      ASSERT_EQ(std::memcmp(result.data() + begin, expected_rows.data() + begin,
                            static_cast<std::size_t>(layout.stride_bytes)),
                0)
          << "row of slot " << slot;
    }
  });
}

constexpr RowOptimizerType kOptimizers[] = {RowOptimizerType::kSgd, RowOptimizerType::kAdagrad,
                                            RowOptimizerType::kRowwiseAdagrad,
                                            RowOptimizerType::kAdam, RowOptimizerType::kFtrl};

TEST(DeviceBackward, EveryOptimizerAndDim) {
  SATRAP_NEEDS_DEVICE();
  for (const auto optimizer : kOptimizers) {
    for (const std::int64_t dim : {1, 4, 6, 8, 12, 16, 36, 64, 128, 200, 256, 512, 1000}) {
      SCOPED_TRACE(::testing::Message() << int(optimizer) << " dim " << dim);
      check_backward(random_batch({.num_rows = 5,
                                   .max_bag = 7,
                                   .dim = dim,
                                   .poolings = {BagPooling::kSum, BagPooling::kMean}},
                                  static_cast<std::uint64_t>(dim)),
                     {.optimizer = optimizer});
    }
  }
}

TEST(DeviceBackward, EveryTypeOfWeightsAndGradient) {
  SATRAP_NEEDS_DEVICE();
  for (const auto weights : {FloatType::kFloat32, FloatType::kBFloat16, FloatType::kFloat16}) {
    for (const auto grad : {FloatType::kFloat32, FloatType::kBFloat16, FloatType::kFloat16}) {
      for (const bool stochastic : {false, true}) {
        for (const auto optimizer :
             {RowOptimizerType::kAdagrad, RowOptimizerType::kRowwiseAdagrad}) {
          SCOPED_TRACE(::testing::Message()
                       << int(weights) << ' ' << int(grad) << ' ' << stochastic);
          check_backward(
              random_batch({.num_rows = 6,
                            .max_bag = 5,
                            .dim = 20,
                            .weighted = true,
                            .poolings = {BagPooling::kSqrtN, BagPooling::kSequence}},
                           11),
              {.optimizer = optimizer, .weights = weights, .grad = grad, .stochastic = stochastic});
        }
      }
    }
  }
}

TEST(DeviceBackward, KeysWithoutSlotAreLeftOut) {
  SATRAP_NEEDS_DEVICE();
  check_backward(random_batch({.num_rows = 30, .max_bag = 4, .dim = 8}, 5),
                 {.optimizer = RowOptimizerType::kAdam, .some_missing = true});
}

TEST(DeviceBackward, HotKeysAreSummedInChunks) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t distinct : {1, 3}) {
    for (const std::int64_t rows : {63, 64, 65, 129, 700}) {
      SCOPED_TRACE(::testing::Message() << distinct << " keys in " << rows << " rows");
      check_backward(random_batch({.num_rows = rows,
                                   .max_bag = 3,
                                   .distinct_ids = distinct,
                                   .dim = 12,
                                   .num_tables = 1},
                                  static_cast<std::uint64_t>(rows)),
                     {.optimizer = RowOptimizerType::kAdagrad});
    }
  }
}

TEST(DeviceBackward, TheHottestKeyIsSummedInGroups) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_rows = 100;
  batch.dim = 4;
  batch.poolings = {BagPooling::kSum};
  batch.max_lengths = {1};
  for (std::int64_t row = 0; row < batch.num_rows; ++row) {
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
  // 1900 chunks in 30 groups: nobody sums more than kChunk vectors.
  HostBatch batch;
  batch.num_rows = 122;
  batch.dim = 8;
  batch.poolings = {BagPooling::kSqrtN};
  batch.max_lengths = {1};
  const Key hot = make_key(TableId{1}, 5);
  for (std::int64_t row = 0; row < batch.num_rows; ++row) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      batch.keys.push_back(i % 333 == 0 ? make_key(TableId{}, i) : hot);
    }
    batch.offsets.push_back(batch.num_ids());
  }
  ASSERT_GT(std::count(batch.keys.begin(), batch.keys.end(), hot), 100'000);
  check_backward(batch, {.optimizer = RowOptimizerType::kAdagrad, .grad = FloatType::kBFloat16});
}

TEST(DeviceBackward, EveryDegreeOfDuplicates) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t percent : kDuplicatePercents) {
    SCOPED_TRACE(percent);
    check_backward(batch_with_duplicates(3989, percent, 12, static_cast<std::uint64_t>(percent)),
                   {.optimizer = RowOptimizerType::kAdam, .some_missing = percent < 50});
  }
}

TEST(DeviceBackward, EmptyBatchChangesNothing) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_rows = 2;
  batch.poolings = {BagPooling::kSum};
  batch.max_lengths = {1};
  batch.offsets = {0, 0, 0};
  check_backward(batch, {});
}

TEST(DeviceBackward, StochasticRoundingKeepsTheMean) {
  SATRAP_NEEDS_DEVICE();
  // A step of a hundredth of the distance between two bf16 numbers: rounded to nearest, nothing
  // would ever change.
  const RowLayout layout =
      RowLayout::of(1024, FloatType::kBFloat16, optimizer_of(RowOptimizerType::kSgd));
  HostBatch batch;
  batch.num_rows = 1;
  batch.dim = 1024;
  batch.poolings = {BagPooling::kSum};
  batch.max_lengths = {1};
  batch.keys = {make_key(TableId{}, 1)};
  batch.offsets = {0, 1};
  RowOptimizer optimizer;
  optimizer.type = RowOptimizerType::kSgd;
  optimizer.lr = 0x1.0p-7F / 100;
  const backend::Stream stream;
  const backend::CacheSize size{1, 1};
  const backend::Cache cache(layout, size, backend::EvictionPolicy::kLru, stream);
  const backend::Plan plan(1, layout, 0);
  const DeviceBatch on_device(batch);
  const DeviceArray<float> grad(
      std::vector<float>(static_cast<std::size_t>(batch.row_stride()), -1.0F));
  std::vector<std::byte> ones(static_cast<std::size_t>(layout.stride_bytes));
  for (std::int64_t d = 0; d < 1024; ++d) put_float(FloatType::kBFloat16, ones.data(), d, 1.0F);
  const std::vector<std::int32_t> slots{0};
  const int kSteps = 50;
  for (const bool stochastic : {false, true}) {
    upload(ones, cache.view().rows);
    backend::build_plan(on_device.bags(), 1, 1024, plan.view(1), stream);
    stream.wait_until_idle();
    upload(slots, plan.view(1).slots);
    for (int t = 1; t <= kSteps; ++t) {
      backend::backward_update(cache.view(), plan.view(1), FloatType::kFloat32, grad.data(),
                               RowOptimizerType::kSgd, RowStep(optimizer, 1.0, t),
                               {stochastic, hash64(7, static_cast<std::uint64_t>(t))}, stream);
    }
    stream.wait_until_idle();
    const auto row = download(cache.view().rows, layout.stride_bytes);
    double mean = 0.0;
    for (std::int64_t d = 0; d < 1024; ++d) {
      mean += static_cast<double>(get_float(FloatType::kBFloat16, row.data(), d)) / 1024;
    }
    // 50 steps of a hundredth: half of the distance up. Standard error of the mean: about 0.0001.
    EXPECT_NEAR(mean, stochastic ? 1.0 + 0.5 * 0x1.0p-7 : 1.0, 0.0005);
  }
}

}  // namespace
}  // namespace satrap::testing
