#include "satrap/backend/device_plan.h"

#include "satrap/backend/operations.h"
#include "satrap/core/error.h"

namespace satrap::backend {

namespace {

/// Takes the parts of a plan from an arena or, if that is null, only sums their sizes: the same
/// list serves both.
struct Parts {
  Arena* arena;
  std::int64_t bytes = 0;

  template <class T>
  void take(T*& part, std::int64_t count) {
    bytes += arena_bytes<T>(count);
    if (arena != nullptr) part = arena->take<T>(count);
  }
};

/// Lays out memory that operations use only while they run.
void lay_out(Parts& parts,
             std::int64_t padded_dim,
             std::int64_t prims_bytes,
             PlanView& plan,
             MissView& misses) {
  const std::int64_t n = plan.max_ids;
  // A segment of more than kSumChunk occurrences has fewer than two chunks per kSumChunk of them.
  const std::int64_t max_chunks = 2 * n / kSumChunk + 1;
  const std::int64_t max_groups = 2 * max_chunks / kSumChunk + 1;
  parts.take(plan.id_tags, n);
  parts.take(plan.id_prefixes, n);
  parts.take(plan.id_places, n);
  parts.take(plan.sorted_tags, n);
  parts.take(plan.positions, n);
  parts.take(plan.scratch_positions, n);
  parts.take(plan.sorted_prefixes, n);
  parts.take(plan.mixed_runs, n / 32 + 1);
  parts.take(plan.counts2, n);
  parts.take(plan.counts4, n / kSumChunk + 1);
  parts.take(plan.partial_sums, max_chunks * padded_dim);
  parts.take(plan.group_sums, max_groups * padded_dim);
  auto* prims_scratch = static_cast<std::byte*>(plan.prims_scratch);
  parts.take(prims_scratch, prims_bytes);
  plan.prims_scratch = prims_scratch;
  plan.prims_scratch_bytes = prims_bytes;
  parts.take(misses.tile_counts, n / 8 + 1);
  parts.take(misses.record_unique, n);
  parts.take(misses.record_slot, n);
  parts.take(misses.record_ordinal, n);
  parts.take(misses.record_victim, n);
}

/// Lays out memory that stays until the batch is done.
void lay_out(Parts& parts, std::int64_t max_overflow, PlanView& plan, MissView& misses) {
  const std::int64_t n = plan.max_ids;
  const std::int64_t max_longs = n / kSumChunk + 1;
  parts.take(plan.counts, 1);
  parts.take(plan.coefficients, n);
  parts.take(plan.unique_of, n);
  parts.take(plan.occurrence_targets, n);
  parts.take(plan.occurrence_coefficients, n);
  parts.take(plan.unique_tags, n);
  parts.take(plan.segments, n + 1);
  parts.take(plan.slots, n);
  parts.take(plan.set_runs, n + 1);
  parts.take(plan.long_unique, max_longs);
  parts.take(plan.long_chunks, max_longs + 1);
  parts.take(plan.long_groups, max_longs + 1);
  parts.take(misses.counts, 1);
  parts.take(misses.miss_keys, n);
  parts.take(misses.miss_slots, n);
  parts.take(misses.overflow_keys, max_overflow);
  parts.take(misses.writeback_keys, n);
  parts.take(misses.writeback_slots, n);
}

/// The bytes that the same list takes.
template <class... Arguments>
std::int64_t bytes_of(Arguments... arguments) {
  Parts parts{nullptr};
  lay_out(parts, arguments...);
  return parts.bytes;
}

PlanView empty_plan(std::int64_t max_ids) {
  SATRAP_CHECK(max_ids > 0 && max_ids <= 0x7FFFFFFF, "a plan for ", max_ids, " ids");
  PlanView plan;
  plan.max_ids = max_ids;
  return plan;
}

}  // namespace

PlanScratch::PlanScratch(Device& device, std::int64_t max_ids, const RowLayout& layout)
    : view_(empty_plan(max_ids)),
      arena_(device,
             Place::kDevice,
             bytes_of(layout.padded_dim, device.prims_scratch_bytes(max_ids), view_, MissView{}),
             "the scratch of plans") {
  Parts parts{&arena_};
  lay_out(parts, layout.padded_dim, device.prims_scratch_bytes(max_ids), view_, misses_);
}

DevicePlan::DevicePlan(Device& device, const PlanScratch& scratch, std::int64_t max_overflow)
    : arena_(device,
             Place::kDevice,
             bytes_of(max_overflow, scratch.view_, MissView{}),
             "the plan of a batch"),
      view_(scratch.view_),
      misses_(scratch.misses_) {
  Parts parts{&arena_};
  lay_out(parts, max_overflow, view_, misses_);
}

PlanView DevicePlan::view(std::int64_t num_ids) const {
  SATRAP_CHECK(num_ids >= 0 && num_ids <= view_.max_ids, "a batch of ", num_ids,
               " ids, in a plan for ", view_.max_ids);
  PlanView view = view_;
  view.num_ids = num_ids;
  return view;
}

SlotListBuffer::SlotListBuffer(Device& device, std::int64_t num_sets)
    : arena_(device,
             Place::kDevice,
             arena_bytes<std::uint32_t>(1) +
                 arena_bytes<std::int32_t>(num_sets * CacheSize::kWays) +
                 arena_bytes<Key>(num_sets * CacheSize::kWays) + arena_bytes<Count4>(num_sets) +
                 arena_bytes<std::byte>(device.prims_scratch_bytes(num_sets)),
             "a list of slots") {
  view_.count = arena_.take<std::uint32_t>(1);
  view_.slots = arena_.take<std::int32_t>(num_sets * CacheSize::kWays);
  view_.keys = arena_.take<Key>(num_sets * CacheSize::kWays);
  view_.set_counts = arena_.take<Count4>(num_sets);
  view_.prims_scratch_bytes = device.prims_scratch_bytes(num_sets);
  view_.prims_scratch = arena_.take<std::byte>(view_.prims_scratch_bytes);
}

}  // namespace satrap::backend
