#include <algorithm>

#include <gtest/gtest.h>

#include "satrap/backend/device_plan.h"
#include "tests/backend/backward_oracle.h"

namespace satrap::testing {
namespace {

constexpr std::uint32_t kUpdates = 20;

/// The purpose of a cache for tables: rows that come from the host, are updated and return
/// equal, byte for byte and with their headers, rows that were updated as often on the host.
void check_round_trip(const BackwardCase& c, std::int64_t dim) {
  const RowLayout layout = RowLayout::of(dim, c.weights, c.optimizer);
  const HostBatch batch = random_batch(
      {.num_examples = 40, .max_bag = 5, .distinct_ids = 6, .dim = dim, .weighted = true}, c.seed);
  const HostPlan host = make_host_plan(batch);
  const std::int64_t num_rows = std::ssize(host.tags);
  Random random(c.seed);
  std::vector<std::byte> rows(static_cast<std::size_t>(num_rows * layout.row_bytes));
  std::vector<std::int32_t> slots;
  for (std::int64_t u = 0; u < num_rows; ++u) {
    const auto fresh = random_rows(layout, 1, random);
    std::byte* const row = rows.data() + u * layout.row_bytes;
    layout.from_device(fresh.data(), row);
    *reinterpret_cast<RowHeader*>(row) = {
        backend::key_of_tag(host.tags[static_cast<std::size_t>(u)]), 0, 0};
    slots.push_back(static_cast<std::int32_t>(u));
  }
  const auto grad = random_gradient(batch, FloatType::kFp32, random);
  std::vector<float> grad_floats(grad.size() / sizeof(float));
  std::memcpy(grad_floats.data(), grad.data(), grad.size());

  const backend::Stream stream(device());
  const backend::CacheSize size{num_rows / 32 + 1, 1};
  const backend::Cache cache(device(), layout, size, backend::EvictionPolicy::kLru, stream);
  const DeviceBatch on_device(batch);
  const DeviceArray<std::byte> staging(rows), grad_on_device(grad);
  const DeviceArray<std::int32_t> slots_on_device(slots);
  const DeviceArray<std::uint32_t> count(
      std::vector<std::uint32_t>{static_cast<std::uint32_t>(num_rows)});
  const backend::PlanScratch scratch(device(), batch.num_ids(), layout);
  const backend::DevicePlan plan(device(), scratch, 0);
  const backend::PlanView view = plan.view(batch.num_ids());
  device().build_plan({on_device.bags(), size.num_sets, layout.padded_dim, view}, stream);
  device().copy(view.slots, slots.data(), num_rows * 4, stream);
  device().scatter_rows(
      {cache.view(), {slots_on_device.data(), count.data(), 0, num_rows}, staging.data()}, stream);
  stream.wait_until_idle();
  for (std::uint32_t t = 1; t <= kUpdates; ++t) {
    const TableStep step{RowStep(optimizer_of(c.optimizer), 1.0 / t, t), hash64(c.seed, t), t};
    const DeviceArray<TableStep> steps(std::vector<TableStep>(kMaxTables, step));
    device().backward_update(
        {cache.view(), view, FloatType::kFp32, grad_on_device.data(), c.optimizer, steps.data()},
        stream);
    stream.wait_until_idle();
    std::vector<std::byte> device_row(static_cast<std::size_t>(layout.row_bytes));
    for (std::int64_t u = 0; u < num_rows; ++u) {
      std::byte* const row = rows.data() + u * layout.row_bytes;
      layout.to_device(row, device_row.data());
      update_on_host(c, layout, step,
                     gradient_of(host.occurrences[static_cast<std::size_t>(u)], grad_floats,
                                 layout.padded_dim),
                     device_row.data());
      layout.from_device(device_row.data(), row);
    }
  }
  device().gather_rows(
      {cache.view(), {slots_on_device.data(), count.data(), 0, num_rows}, staging.data()}, stream);
  stream.wait_until_idle();
  const std::vector<std::byte> back = staging.host();
  for (std::int64_t u = 0; u < num_rows; ++u) {
    const std::byte* const row = rows.data() + u * layout.row_bytes;
    EXPECT_EQ(reinterpret_cast<const RowHeader*>(row)->count, kUpdates);
    EXPECT_EQ(std::memcmp(back.data() + u * layout.row_bytes, row,
                          static_cast<std::size_t>(layout.row_bytes)),
              0)
        << "row " << u;
  }
}

TEST(DeviceRoundTrip, UpdatesInACacheAreUpdatesInPlace) {
  SATRAP_NEEDS_DEVICE();
  for (const auto optimizer : kOptimizers) {
    for (const auto weights : kFloatTypes) {
      for (const std::int64_t dim : {4, 6, 17, 64, 256, 1024}) {
        SCOPED_TRACE(::testing::Message()
                     << name_of(optimizer) << ' ' << name_of(weights) << " dim " << dim);
        check_round_trip({.optimizer = optimizer, .weights = weights}, dim);
      }
    }
  }
}

}  // namespace
}  // namespace satrap::testing
