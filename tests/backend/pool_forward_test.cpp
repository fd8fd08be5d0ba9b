#include <gtest/gtest.h>

#include "satrap/backend/device_plan.h"
#include "satrap/kernels/pool.h"
#include "tests/backend/host_rows.h"

namespace satrap::testing {
namespace {

struct Types {
  FloatType weights = FloatType::kFp32, out = FloatType::kFp32;
};

constexpr auto kUntouched = std::byte{0x5A};

/// The output of the CPU's pool_bags, one bag per vector.
std::vector<std::byte> pool_on_host(const HostBatch& batch,
                                    const HostPlan& plan,
                                    const RowLayout& layout,
                                    const std::vector<std::byte>& rows,
                                    const std::vector<std::int32_t>& slots,
                                    FloatType out_type) {
  std::vector<std::byte> out(
      static_cast<std::size_t>(batch.num_examples * batch.row_stride() * bytes_of(out_type)),
      kUntouched);
  const auto features = batch.features();
  for (std::size_t f = 0; f < features.size(); ++f) {
    for (std::int64_t row = 0; row < batch.num_examples; ++row) {
      const auto bag =
          f * static_cast<std::size_t>(batch.num_examples) + static_cast<std::size_t>(row);
      for (std::int64_t t = 0; t < features[f].vectors_per_row; ++t) {
        std::int64_t begin = batch.offsets[bag], end = batch.offsets[bag + 1];
        if (features[f].pooling == Pooling::kSequence) {
          begin = std::min(begin + t, end);
          end = std::min(begin + 1, end);
        }
        std::vector<std::vector<float>> vectors;
        std::vector<const std::byte*> pointers;
        std::vector<std::int32_t> unique_of;
        std::vector<float> coefficients;
        for (std::int64_t i = begin; i < end; ++i) {
          const auto unique = static_cast<std::size_t>(plan.unique_of[static_cast<std::size_t>(i)]);
          if (slots[unique] < 0) continue;
          std::vector<float> weights;
          for (std::int64_t d = 0; d < layout.padded_dim; ++d) {
            weights.push_back(get_float(layout.weight_type,
                                        rows.data() + slots[unique] * layout.device_stride, d));
          }
          unique_of.push_back(static_cast<std::int32_t>(vectors.size()));
          coefficients.push_back(plan.coefficients[static_cast<std::size_t>(i)]);
          vectors.push_back(std::move(weights));
        }
        for (const auto& v : vectors)
          pointers.push_back(reinterpret_cast<const std::byte*>(v.data()));
        const GatherSource source{pointers.data(), 0, unique_of.data(), coefficients.data()};
        const std::int64_t offsets[] = {0, static_cast<std::int64_t>(vectors.size())};
        std::vector<float> sum(static_cast<std::size_t>(layout.padded_dim));
        pool_bags(source, offsets, 1, sum.data(), layout.padded_dim, layout.padded_dim);
        const std::int64_t at =
            row * batch.row_stride() + features[f].column + t * layout.padded_dim;
        for (std::int64_t d = 0; d < layout.padded_dim; ++d) {
          put_float(out_type, out.data(), at + d,
                    rounded(out_type, sum[static_cast<std::size_t>(d)]));
        }
      }
    }
  }
  return out;
}

void check_pool(const HostBatch& batch,
                Types types,
                bool some_missing,
                std::uint64_t seed,
                bool long_bags_are_listed = true) {
  Random random(seed + 1000);
  const RowLayout layout = RowLayout::of(batch.dim, types.weights, RowOptimizerType::kAdagrad);
  const HostPlan host = make_host_plan(batch);
  const auto num_unique = static_cast<std::int64_t>(host.tags.size());
  const backend::CacheSize size{num_unique / 32 + 2, 5};
  const auto rows = random_rows(layout, size.total_slots(), random);
  const auto slots = random_slots(num_unique, size.total_slots(), some_missing, random);
  const auto expected = pool_on_host(batch, host, layout, rows, slots, types.out);

  const DeviceBatch on_device(batch);
  backend::Bags bags = on_device.bags();
  if (!long_bags_are_listed) bags.num_long_bags = 0;
  const backend::PlanScratch scratch(device(), std::max<std::int64_t>(1, batch.num_ids()), layout);
  const backend::DevicePlan plan(device(), scratch, 0);
  const backend::PlanView view = plan.view(batch.num_ids());
  const DeviceArray<std::byte> out(static_cast<std::int64_t>(expected.size()));
  for_each_schedule([&] {
    const backend::Stream stream(device());
    const backend::Cache cache(device(), layout, size, backend::EvictionPolicy::kLru, stream);
    device().build_plan({bags, size.num_sets, layout.padded_dim, view}, stream);
    device().copy(view.slots, slots.data(), num_unique * 4, stream);
    device().copy(cache.view().rows, rows.data(), static_cast<std::int64_t>(rows.size()), stream);
    device().fill(out.data(), 0x5A, static_cast<std::int64_t>(expected.size()), stream);
    device().pool_forward({cache.view(), bags, view, types.out, out.data()}, stream);
    stream.wait_until_idle();
    const auto result = out.host();
    std::size_t wrong = 0;
    while (wrong < expected.size() && result[wrong] == expected[wrong]) ++wrong;
    ASSERT_EQ(wrong, expected.size()) << "first byte that differs";
  });
}

TEST(DevicePoolForward, SumsTheRowsOfABag) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 2;
  batch.dim = 4;
  batch.poolings = {Pooling::kSum};
  batch.max_lengths = {1};
  batch.keys = {make_key(TableId{}, 1), make_key(TableId{}, 2)};
  batch.offsets = {0, 2, 2};
  check_pool(batch, {}, false, 0);
}

TEST(DevicePoolForward, EveryDim) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim :
       {1, 4, 6, 8, 12, 20, 32, 64, 100, 128, 132, 256, 260, 512, 1020, 1024}) {
    SCOPED_TRACE(dim);
    check_pool(random_batch({.num_examples = 4,
                             .max_bag = 9,
                             .dim = dim,
                             .poolings = {Pooling::kSum, Pooling::kMean}},
                            static_cast<std::uint64_t>(dim)),
               {}, false, 1);
  }
}

TEST(DevicePoolForward, EveryTypeOfWeightsAndOutput) {
  SATRAP_NEEDS_DEVICE();
  for (const auto weights : {FloatType::kFp32, FloatType::kBf16, FloatType::kFp16}) {
    for (const auto out : {FloatType::kFp32, FloatType::kBf16, FloatType::kFp16}) {
      for (const std::int64_t dim : {12, 64, 160, 400, 1000}) {
        SCOPED_TRACE(::testing::Message() << int(weights) << ' ' << int(out) << ' ' << dim);
        check_pool(random_batch({.num_examples = 3,
                                 .max_bag = 7,
                                 .dim = dim,
                                 .weighted = true,
                                 .poolings = {Pooling::kMean, Pooling::kSqrtN}},
                                7),
                   {weights, out}, true, 2);
      }
    }
  }
}

TEST(DevicePoolForward, EveryPoolingWithMissingRows) {
  SATRAP_NEEDS_DEVICE();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    check_pool(random_batch({.num_examples = 11,
                             .max_bag = 6,
                             .dim = 16,
                             .weighted = seed % 2 == 0,
                             .poolings = {Pooling::kSequence, Pooling::kSum, Pooling::kMean,
                                          Pooling::kSqrtN, Pooling::kSequence}},
                            seed),
               {}, true, seed);
  }
}

TEST(DevicePoolForward, LongBagsBesideEmptyOnes) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 4;
  batch.dim = 8;
  batch.poolings = {Pooling::kMean};
  batch.max_lengths = {1};
  Random random(3);
  for (const std::int64_t length : {2000, 0, 1, 333}) {
    for (std::int64_t i = 0; i < length; ++i) {
      batch.keys.push_back(make_key(TableId{}, static_cast<std::uint64_t>(random.below(500))));
    }
    batch.offsets.push_back(batch.num_ids());
  }
  check_pool(batch, {}, false, 4);
}

constexpr std::int64_t kLongest = backend::kMaxShortBag;  // of short bags

// Lengths around the limit, around tiles of 32 rows and around the 128 rows under way.
TEST(DevicePoolForward, LongAndShortBagsOfEveryLength) {
  SATRAP_NEEDS_DEVICE();
  const std::vector<Pooling> poolings{Pooling::kSum, Pooling::kMean, Pooling::kSqrtN};
  const std::vector<std::vector<std::int64_t>> lengths{{kLongest + 1, 0, 1, kLongest - 1, 3 * 128},
                                                       {2, 5000, kLongest, 288, 0},
                                                       {385, kLongest + 1, 3, 289, 1}};
  for (const bool weighted : {false, true}) {
    SCOPED_TRACE(weighted);
    check_pool(batch_of_lengths(poolings, lengths, 16, weighted, 1), {}, true, 8);
  }
}

TEST(DevicePoolForward, LongBagsOfEveryDimAndType) {
  SATRAP_NEEDS_DEVICE();
  const std::vector<Pooling> poolings{Pooling::kSum, Pooling::kMean, Pooling::kSequence};
  const std::vector<std::vector<std::int64_t>> lengths{{1, 0}, {2, 270}, {260, 2}};
  const auto check = [&](std::int64_t dim, Types types) {
    SCOPED_TRACE(::testing::Message() << dim << ' ' << int(types.weights) << ' ' << int(types.out));
    check_pool(batch_of_lengths(poolings, lengths, dim, dim == 12, 2), types, true, 9);
  };
  const FloatType all[] = {FloatType::kFp32, FloatType::kBf16, FloatType::kFp16};
  for (const auto weights : all) {
    for (const auto out : all) check(12, {weights, out});
  }
  for (const std::int64_t dim : {1, 36, 64, 260}) check(dim, {});
  for (const std::int64_t dim : {68, 132}) check(dim, {FloatType::kBf16, FloatType::kBf16});
}

TEST(DevicePoolForward, LongBagsThatAreNotListedAreOnlySlower) {
  SATRAP_NEEDS_DEVICE();
  const HostBatch batch = batch_of_lengths({Pooling::kSum}, {{1, 600, 0}}, 8, true, 3);
  check_pool(batch, {}, false, 10, false);
}

TEST(DevicePoolForward, ASumOfALongBagThatIsMinusZeroStaysSo) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch = batch_of_lengths({Pooling::kSum}, {{290, 1, 700}}, 36, true, 4);
  batch.weights.assign(batch.weights.size(), 0.0F);  // but for the last id of each bag
  for (const std::size_t end : {290, 291, 991}) {
    batch.weights[end - 1] = std::numeric_limits<float>::denorm_min();
  }
  check_pool(batch, {}, false, 11);
}

TEST(DevicePoolForward, EveryDegreeOfDuplicates) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t percent : kDuplicatePercents) {
    SCOPED_TRACE(percent);
    const auto seed = static_cast<std::uint64_t>(percent);
    check_pool(batch_with_duplicates(3989, percent, 12, seed), {}, percent < 50, seed);
  }
}

// So many that a lane of each group locates one.
TEST(DevicePoolForward, ManyVectors) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim : {3, 16, 60, 200}) {
    SCOPED_TRACE(dim);
    check_pool(random_batch({.num_examples = dim < 10 ? 3000 : 700,
                             .max_bag = 3,
                             .distinct_ids = 300,
                             .dim = dim,
                             .poolings = {Pooling::kSum, Pooling::kSequence}},
                            static_cast<std::uint64_t>(dim)),
               {}, true, 7);
  }
}

TEST(DevicePoolForward, ASumThatIsMinusZeroStaysSo) {
  SATRAP_NEEDS_DEVICE();
  check_pool(batch_of_zero_sums(), {}, true, 6);
}

TEST(DevicePoolForward, EmptyBatchGivesZeros) {
  SATRAP_NEEDS_DEVICE();
  HostBatch batch;
  batch.num_examples = 3;
  batch.dim = 12;
  batch.poolings = {Pooling::kSum, Pooling::kSequence};
  batch.max_lengths = {1, 2};
  batch.offsets.assign(7, 0);
  check_pool(batch, {}, false, 5);
}

}  // namespace
}  // namespace satrap::testing
