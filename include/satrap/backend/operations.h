#pragma once

#include <cstdint>
#include <span>

#include "satrap/backend/views.h"
#include "satrap/kernels/dropout.h"
#include "satrap/kernels/sum_order.h"

/// The operations of the embedding path on a device (device.h). Common to all:
///
/// They queue their work on `stream` and return; nothing waits for the device, nothing is
/// allocated. Counts stay on the device, and kernels read them there. The input of an operation
/// must be complete in stream order; its output is complete in stream order afterwards.
///
/// They are deterministic: the same input gives the same bits, whatever the schedule. There are no
/// floating-point atomics, and sums run in the documented order. Multiplications and additions are
/// fused exactly where the formula says fma, so device, executor and CPU agree bit for bit.
///
/// Preconditions on device memory (ascending offsets, slots in range, zeros in the padding of rows
/// and of gradients) are not checked. A failing CUDA call throws Error(kUnavailable) with its name
/// and reason; a wrong argument that the host can see throws Error(kInternal). Empty batches
/// (num_ids == 0, num_examples == 0) are allowed everywhere.
namespace satrap::backend {

/// No vector of the output: an id that is not used.
inline constexpr std::uint32_t kNoTarget = 0xFFFFFFFFU;

/// A key's place in a cache. The tag is a bijection of the key that is uniform in its top
/// bits, which choose the set: tags in ascending order are grouped by set.
constexpr std::uint64_t tag_of(Key key);
constexpr Key key_of_tag(std::uint64_t tag);

/// The vectors of one add_in_order.
inline constexpr std::int64_t kMaxAdded = 64;

/// An overflow row of an earlier batch that is not done with it.
struct OverflowRow {
  std::uint64_t tag = 0;
  std::int32_t slot = 0;        // from num_slots on
  std::uint32_t is_needed = 0;  // becomes 1 if this batch needs it, too
};

struct ResolveArguments {
  std::uint32_t batch = 1;      // number of this batch, ascending from 1
  std::uint32_t completed = 0;  // last batch whose rows may be evicted: its updates precede this

  // The overflow rows that this batch may use, and the order in which it uses them: distinct slots
  // from num_slots on. Device memory.
  const std::int32_t* overflow_slots = nullptr;  // [max_overflow]
  std::int64_t max_overflow = 0;

  // The overflow rows of earlier batches that are not done with them. A key has one row: what such
  // a row holds is found there, by any batch. Device memory.
  OverflowRow* shared = nullptr;  // [num_shared], tags ascending; in and out
  std::int64_t num_shared = 0;

  // Under kLookahead, the next uses of the batch's keys (Window::next_uses); null: none is known.
  const std::uint32_t* next_uses = nullptr;  // [num_next_uses] device
  std::int64_t num_next_uses = 0;            // of keys beyond, none is known

  // Under kLookahead frequencies are halved every 2^halving_log2 batches, so that rows that were
  // hot once leave. At most 31. About eight windows: a shorter memory costs misses.
  std::uint32_t halving_log2 = 10;
};

struct TouchArguments {
  std::uint32_t batch = 1;     // number of the batch, ascending from 1
  std::uint32_t resolved = 0;  // last batch that has been resolved
};

/// Rows [begin, min(begin + max_rows, *count)) of a list of slots.
struct SlotRange {
  const std::int32_t* slots;   // device [*count]
  const std::uint32_t* count;  // device [1]
  std::int64_t begin, max_rows;
};

/// plan: sorts the batch's keys once, with their positions, and derives everything from that order.
/// Fills all of `plan` except slots. Requires plan.num_ids == bags.num_ids <= plan.max_ids, and
/// vectors within 2^34 elements of the output's begin. Vectors of a sequence are padded_dim
/// elements apart.
struct BuildPlan {
  Bags bags;
  std::int64_t num_sets;    // of the cache that resolve will look into
  std::int64_t padded_dim;  // of its rows
  PlanView plan;
};

/// Looks at a batch ahead of its resolve, at most window.size.depth batches ahead: notes in the
/// cache which of its rows the batch needs, and in the window that it is the next use of its keys
/// where they were seen last. Batches are touched in order, each once, with a plan whose keys are
/// those of the plan that resolve gets; of the plan, only counts and unique_tags are read. One warp
/// owns a set of the directory. A cache of another policy than kLookahead needs no touch.
struct Touch {
  CacheView cache;
  WindowView window;
  PlanView plan;
  TouchArguments arguments;
};

/// probe, admit, evict. All keys are looked up first, and the rows found are pinned: a row is
/// pinned while last_needed > completed. A key that is not in its set but among the shared rows is
/// found there: it is a hit, and not admitted; the caller keeps its row until all batches that have
/// found it are done. Then one warp owns a set and handles all of its misses, so nothing is locked
/// and the result does not depend on the schedule. Each miss takes, in the order of tags: the first
/// empty way; else the unpinned way that the policy chooses, lowest way first among equals; else
/// the next of overflow_slots; else none (-1), which counts.overflows > max_overflow shows. Sets
/// plan.slots and the lists of `misses`. Rows are not touched: gather_rows must have saved the
/// victims before scatter_rows overwrites them. Cost: the batch's keys and the bookkeeping of their
/// sets, independent of the size of the cache.
struct Resolve {
  CacheView cache;
  PlanView plan;
  ResolveArguments arguments;
  MissView misses;
};

/// Copies rows of a list of slots to staging, in the host's layout; skips slots of -1. Changed rows
/// become gathered. For victims, for overflow rows at the end of a batch, for export and flush.
struct GatherRows {
  CacheView cache;
  SlotRange from;
  std::byte* staging;  // device or mapped [max_rows, row_bytes] out
};

/// The reverse: copies rows into their slots.
struct ScatterRows {
  CacheView cache;
  SlotRange to;
  const std::byte* staging;
};

/// As scatter_rows, of rows that are anywhere in registered or pinned memory of the host (device.h)
/// or in the device's: row i, in the host's layout, is at rows[i], a multiple of 16, and goes to
/// slots[i]. Nothing may write them meanwhile.
struct LoadRows {
  CacheView cache;
  const std::int32_t* slots;   // device [*count]
  const std::uint32_t* count;  // device [1], at most max_rows
  std::int64_t max_rows;
  const std::byte* const* rows;  // device [*count]
};

/// pool forward: output vector = Σ coefficient * weights over the bag's ids in order, by fma from
/// 0; zeros for an empty bag, a missing row, and after the end of a sequence. Sums are fp32,
/// rounded to the output's type once. Writes padded_dim elements per vector, and nothing between
/// vectors.
struct PoolForward {
  CacheView cache;
  Bags bags;
  PlanView plan;
  FloatType out_type;
  void* out;  // device [num_examples, row_stride], aligned to 16 bytes
};

/// backward and update: sums the gradient of each key over its occurrences (order:
/// kernels/sum_order.h), runs the optimizer on its row in the same pass and advances the row's
/// header; rows become changed. Keys without a slot are skipped. Weights of 16 bits are rounded
/// stochastically, as on the host (core/half.h). Formulas: satrap/kernels/row_optimizer.h.
struct BackwardUpdate {
  CacheView cache;
  PlanView plan;
  FloatType grad_type;
  const void* grad;  // device [num_examples, row_stride], aligned to 16 bytes
  RowOptimizerType optimizer;
  const TableStep* steps;  // device [tables], by the key's table number
};

/// Before backward_update of a step that may have to leave all rows unchanged: if *flag is not 0,
/// the plan becomes one without keys, and the gradient is not read.
struct CancelUpdate {
  const float* flag;  // device [1]
  PlanView plan;
};

/// backward without update: the summed gradient of each key, for whoever runs the optimizer. Key
/// u's goes to vector places[u] of `out`, to none if that is negative; without places to vector u.
struct BackwardGradients {
  RowLayout layout;
  PlanView plan;
  FloatType grad_type;
  const void* grad;
  const std::int32_t* places;  // device [unique], or nullptr
  float* out;                  // device [vectors, padded_dim]
};

/// export, flush: lists the slots of sets [first_set, first_set + num_sets) that hold a row and are
/// not clean, to be gathered in chunks. No resolve may run before the last chunk has been gathered:
/// it could put another row into a listed slot.
struct ListSlots {
  CacheView cache;
  std::int64_t first_set, num_sets;
  SlotList list;  // capacity at least num_sets * kWays
};

/// Makes the listed slots clean, once what was gathered from them has been saved. A slot stays
/// dirty if its row has been updated, or another row has taken its place, since it was gathered.
/// One list at a time: it is marked, or given up, before another is gathered. If a row is evicted
/// meanwhile, its writeback is newer than what was gathered and must be saved after it.
struct MarkClean {
  CacheView cache;
  SlotList list;
};

/// The factors of a layer's dropout, for a dense network on the device: of `columns` columns, in
/// `rows` rows of examples from first_example on.
struct DropoutFactors {
  Dropout dropout;
  std::int64_t first_example, rows, columns;
  float* out;  // device [rows, columns] with `stride`
  std::int64_t stride;
};

/// Adds vectors element by element, in their order: sum[i] = ((v0[i] + v1[i]) + v2[i]) + ... One of
/// them may begin at `sum`, if it is the only one there.
struct AddInOrder {
  std::span<const float* const> vectors;  // host [1 to kMaxAdded]
  std::int64_t count;                     // elements of each
  float* sum;                             // device [count]
};

/// All operations. Each is described where its arguments are.
class Operations {
 public:
  virtual ~Operations() = default;

  virtual void build_plan(const BuildPlan& operation, StreamRef stream) = 0;
  virtual void touch(const Touch& operation, StreamRef stream) = 0;
  virtual void resolve(const Resolve& operation, StreamRef stream) = 0;
  virtual void gather_rows(const GatherRows& operation, StreamRef stream) = 0;
  virtual void scatter_rows(const ScatterRows& operation, StreamRef stream) = 0;
  virtual void load_rows(const LoadRows& operation, StreamRef stream) = 0;
  virtual void pool_forward(const PoolForward& operation, StreamRef stream) = 0;
  virtual void backward_update(const BackwardUpdate& operation, StreamRef stream) = 0;
  virtual void cancel_update(const CancelUpdate& operation, StreamRef stream) = 0;
  virtual void backward_gradients(const BackwardGradients& operation, StreamRef stream) = 0;
  virtual void list_slots(const ListSlots& operation, StreamRef stream) = 0;
  virtual void mark_clean(const MarkClean& operation, StreamRef stream) = 0;
  virtual void dropout_factors(const DropoutFactors& operation, StreamRef stream) = 0;
  virtual void add_in_order(const AddInOrder& operation, StreamRef stream) = 0;
};

// ------------------------------------------------------------------------------ implementation

namespace detail {
// Without this, rows of different tables with the same id would fall into one set.
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
