"""scale_rows: multiplies the weights of listed rows of a cache by a factor."""

from places import Addition, NewFile, after, before

OPERATIONS = "include/satrap/backend/operations.h"
DECLARATION = "  void scale_rows(const ScaleRows& operation, StreamRef stream) override;\n"
LIST_SLOTS = "  void list_slots(const ListSlots& operation, StreamRef stream) override;\n"
ADDITION = Addition("device operation", [
    before(OPERATIONS, "/// pool forward: output vector =", """\
/// Multiplies the weights of a list of slots, which are fp32, by a factor; skips slots of -1. No
/// slot is listed twice. The rows become changed.
struct ScaleRows {
  CacheView cache;
  SlotRange rows;
  float factor;
};

"""),
    before(OPERATIONS, "  virtual void pool_forward(",
           "  virtual void scale_rows(const ScaleRows& operation, StreamRef stream) = 0;\n"),
    before("src/backend/host_device.h", LIST_SLOTS, DECLARATION),
    before("src/backend/host_rows.cpp", "void HostDevice::list_slots(", """\
void HostDevice::scale_rows(const ScaleRows& operation, StreamRef) {
  const auto& [cache, range, factor] = operation;
  const std::int64_t end = std::min<std::int64_t>(*range.count, range.begin + range.max_rows);
  for (std::int64_t i = range.begin; i < end; ++i) {
    const std::int32_t slot = range.slots[i];
    if (slot < 0) continue;
    auto* weights = reinterpret_cast<float*>(cache.rows + slot * cache.layout.device_stride);
    for (std::int64_t d = 0; d < cache.layout.dim; ++d) weights[d] *= factor;
    if (slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;
  }
}

"""),
    before("cuda/backend/cuda_device.h", LIST_SLOTS, DECLARATION),
    before("cuda/backend/rows.cu", "void CudaDevice::list_slots(", """\
namespace {

/// A row per group of lanes.
__global__ void __launch_bounds__(kThreads)
    scale_weights(CacheView cache, SlotRange range, float factor, int log2_lanes) {
  const Group group(log2_lanes);
  const std::int64_t left = static_cast<std::int64_t>(*range.count) - range.begin;
  const std::int64_t num_rows = left < range.max_rows ? left : range.max_rows;
  for (std::int64_t i = global_group(log2_lanes); i < num_rows; i += num_groups(log2_lanes)) {
    const std::int64_t slot = range.slots[range.begin + i];
    if (slot < 0) continue;
    float* weights = reinterpret_cast<float*>(cache.rows + slot * cache.layout.device_stride);
    for (std::int64_t d = group.lane; d < cache.layout.dim; d += group.size) weights[d] *= factor;
    if (group.lane == 0 && slot < cache.size.num_slots()) cache.dirty[slot] = kChanged;
  }
}

}  // namespace

void CudaDevice::scale_rows(const ScaleRows& operation, StreamRef stream) {
  const auto& [cache, range, factor] = operation;
  if (range.max_rows <= 0) return;
  const int log2_lanes = row_lanes(cache.layout.padded_dim, 0).log2_lanes;
  launch(scale_weights, grids_.grid_for(range.max_rows, kThreads >> log2_lanes), stream, cache,
         range, factor, log2_lanes);
}

"""),
], test=NewFile("tests/backend/scale_rows_test.cpp", """\
#include <gtest/gtest.h>

#include "satrap/backend/cache.h"
#include "tests/backend/host_rows.h"

namespace satrap::testing {
namespace {

TEST(ScaleRows, EqualsALoopOverTheWeights) {
  SATRAP_NEEDS_DEVICE();
  for (const std::int64_t dim : {1, 3, 64, 300}) {
    SCOPED_TRACE(dim);
    const RowLayout layout = RowLayout::of(dim, FloatType::kFp32, RowOptimizerType::kAdam);
    const backend::CacheSize size{2, 3};
    Random random(1);
    const auto rows = random_rows(layout, size.total_slots(), random);
    const auto slots = random_slots(50, size.total_slots(), true, random);
    const DeviceArray<std::int32_t> slots_on_device(slots);
    const DeviceArray<std::uint32_t> count(std::vector<std::uint32_t>{45});
    auto expected = rows;
    std::vector<std::uint8_t> marks(static_cast<std::size_t>(size.num_slots()), backend::kClean);
    for (std::size_t i = 5; i < 45; ++i) {
      if (slots[i] < 0) continue;
      if (slots[i] < size.num_slots()) marks[static_cast<std::size_t>(slots[i])] = backend::kChanged;
      for (std::int64_t d = 0; d < dim; ++d) {
        float w = 0.0F;
        std::byte* const place = expected.data() + slots[i] * layout.device_stride + d * 4;
        std::memcpy(&w, place, 4);
        w *= 0.75F;
        std::memcpy(place, &w, 4);
      }
    }
    for_each_schedule([&] {
      const backend::Stream stream(device());
      const backend::Cache cache(device(), layout, size, backend::EvictionPolicy::kLru, stream);
      const auto bytes = static_cast<std::int64_t>(rows.size());
      device().copy(cache.view().rows, rows.data(), bytes, stream);
      device().fill(cache.view().dirty, backend::kClean, size.num_slots(), stream);
      device().scale_rows({cache.view(), {slots_on_device.data(), count.data(), 5, 64}, 0.75F},
                          stream);
      stream.wait_until_idle();
      ASSERT_TRUE(download(cache.view().rows, bytes) == expected);
      ASSERT_EQ(download(cache.view().dirty, size.num_slots()), marks);
    });
  }
}

}  // namespace
}  // namespace satrap::testing
"""))
