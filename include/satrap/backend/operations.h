#pragma once

#include <cstdint>

#include "satrap/backend/views.h"
#include "satrap/kernels/sum_order.h"

/// The operations of the embedding path on a device (device.h). Common to all:
///
/// They queue their work on `stream` and return; nothing waits for the device, nothing is
/// allocated. Counts stay on the device, and kernels read them there. What an operation reads must
/// be complete in stream order; what it writes is so afterwards.
///
/// They are deterministic: the same input gives the same bits, whatever the schedule. There is no
/// floating-point atomic, and sums run in the order said. Multiplications and additions are fused
/// exactly where the formula says fma, so device, executor and CPU agree bit for bit.
///
/// Preconditions on device memory (ascending offsets, slots in range, zeros in the padding of rows
/// and of gradients) are not checked. A failing CUDA call throws Error(kUnavailable) with its name
/// and reason; a wrong argument that the host can see throws Error(kInternal). Empty batches
/// (num_ids == 0, num_examples == 0) are allowed everywhere.
namespace satrap::backend {

/// No vector of the output: an id that is not used.
inline constexpr std::uint32_t kNoTarget = 0xFFFFFFFFU;

/// Where a key belongs in a cache. The tag is a bijection of the key that is uniform in its top
/// bits, which choose the set: tags in ascending order are grouped by set.
constexpr std::uint64_t tag_of(Key key);
constexpr Key key_of_tag(std::uint64_t tag);

/// How resolve treats the cache.
enum class ResolveMode {
  kTrain,     // pins what it finds and admits what it misses
  kReadOnly,  // changes nothing in the cache: misses get overflow rows
};
struct ResolveArguments {
  ResolveMode mode = ResolveMode::kTrain;
  std::uint32_t batch = 1;      // number of this batch, ascending from 1
  std::uint32_t completed = 0;  // last batch whose rows may go: its updates precede this in order
  std::int64_t first_overflow = 0;  // the overflow rows [first, first + max) of the cache are this
  std::int64_t max_overflow = 0;    // batch's to use
};

/// Which slots are listed.
enum class ListMode { kDirty, kAll };

class Operations {
 public:
  virtual ~Operations() = default;

  /// plan: sorts the batch's keys once, with their positions, and derives everything from that
  /// order. Fills all of `plan` but slots. Requires plan.num_ids == bags.num_ids <= plan.max_ids,
  /// and vectors within 2^34 elements of the output's begin. Vectors of a sequence are padded_dim
  /// elements apart.
  virtual void build_plan(const Bags& bags,
                          std::int64_t num_sets,    // of the cache that resolve will look into
                          std::int64_t padded_dim,  // of its rows
                          const PlanView& plan,
                          StreamRef stream) = 0;

  /// probe, admit, evict. One warp owns a set and everything the batch wants of it, so nothing is
  /// locked and the result does not depend on the schedule. All keys of the set are looked up
  /// first, and what is found is pinned: a row is pinned while last_needed > completed. Then misses
  /// take, in the order of tags: the first empty way; else the unpinned way that the policy names,
  /// lowest way first among equals; else the next overflow row; else none (-1), which
  /// counts.overflows > max_overflow tells. Sets plan.slots, and the lists of `misses`. Rows are
  /// not touched: before scatter_rows overwrites them, gather_rows must have taken the victims
  /// away. Cost: the batch's keys, and their sets' bookkeeping; nothing grows with the cache.
  virtual void resolve(const CacheView& cache,
                       const PlanView& plan,
                       const ResolveArguments& arguments,
                       const MissView& misses,
                       StreamRef stream) = 0;

  /// Copies rows [begin, min(begin + max_rows, *count)) of a list of slots to staging, where they
  /// are as in the host's memory; slots of -1 are left out. For victims, for overflow rows at the
  /// end of a batch, for export.
  virtual void gather_rows(const CacheView& cache,
                           const std::int32_t* slots,   // device [*count]
                           const std::uint32_t* count,  // device [1]
                           std::int64_t begin,
                           std::int64_t max_rows,
                           std::byte* staging,  // device or mapped [max_rows, row_bytes] out
                           StreamRef stream) = 0;

  /// The reverse: puts rows into their slots.
  virtual void scatter_rows(const CacheView& cache,
                            const std::int32_t* slots,
                            const std::uint32_t* count,
                            std::int64_t begin,
                            std::int64_t max_rows,
                            const std::byte* staging,
                            StreamRef stream) = 0;

  /// pool forward: output vector = Σ coefficient * weights over the bag's ids in order, by fma from
  /// 0; zeros for an empty bag, a missing row, and after the end of a sequence. Sums are fp32,
  /// rounded to the output's type once. Writes padded_dim elements per vector, and nothing between
  /// vectors.
  virtual void pool_forward(const CacheView& cache,
                            const Bags& bags,
                            const PlanView& plan,
                            FloatType out_type,
                            void* out,  // device [num_examples, row_stride], aligned to 16 bytes
                            StreamRef stream) = 0;

  /// backward and update: sums the gradient of each key over its occurrences (order:
  /// kernels/sum_order.h) and runs the optimizer on its row in the same pass, which its header
  /// notes; rows become dirty. Keys without slot are left out. Weights of 16 bits are rounded
  /// stochastically, as on the host (core/half.h). Formulas: satrap/kernels/row_optimizer.h.
  virtual void backward_update(
      const CacheView& cache,
      const PlanView& plan,
      FloatType grad_type,
      const void* grad,  // device [num_examples, row_stride], aligned to 16 bytes
      RowOptimizerType optimizer,
      const TableStep* steps,  // device [tables], by the key's table number
      StreamRef stream) = 0;

  /// backward without update: the summed gradient of each key, for shards that run the optimizer.
  virtual void backward_gradients(const RowLayout& layout,
                                  const PlanView& plan,
                                  FloatType grad_type,
                                  const void* grad,
                                  float* out,  // device [unique, padded_dim]
                                  StreamRef stream) = 0;

  /// export, flush: lists the occupied slots of sets [first_set, first_set + num_sets), all or only
  /// the dirty ones, to be gathered in chunks.
  virtual void list_slots(const CacheView& cache,
                          ListMode mode,
                          std::int64_t first_set,
                          std::int64_t num_sets,
                          const SlotList& list,  // capacity at least num_sets * kWays
                          StreamRef stream) = 0;

  /// Declares the listed slots clean: they have been saved as they are.
  virtual void mark_clean(const CacheView& cache, const SlotList& list, StreamRef stream) = 0;
};

// ------------------------------------------------------------------------------ implementation

namespace detail {
// Rows of different tables with the same id would meet in one set, were it not for this.
constexpr std::uint64_t table_spread(std::uint64_t table) {
  return (table * 0x9E3779B97F4A7C15ULL) & kIdMask;
}
}  // namespace detail

constexpr std::uint64_t tag_of(Key key) {
  const auto bits = static_cast<std::uint64_t>(key);
  const std::uint64_t table = bits >> kIdBits;
  return (((bits & kIdMask) ^ detail::table_spread(table)) << kTableBits) | table;
}

constexpr Key key_of_tag(std::uint64_t tag) {
  const std::uint64_t table = tag & ((std::uint64_t{1} << kTableBits) - 1);
  return static_cast<Key>((table << kIdBits) | ((tag >> kTableBits) ^ detail::table_spread(table)));
}

}  // namespace satrap::backend
