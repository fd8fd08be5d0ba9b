#pragma once

#include <cstddef>
#include <cstdint>

#include "satrap/backend/cache_size.h"
#include "satrap/core/ids.h"
#include "satrap/kernels/pooling.h"
#include "satrap/kernels/row_layout.h"

/// The arguments of kernels: plain structs of numbers and pointers into device memory, passed by
/// value. Owners: Cache (cache.h), DevicePlan (plan.h).
namespace satrap::backend {

/// A stream to queue work on, not owned; the default stream unless it comes from a Stream.
struct StreamRef {
  void* handle = nullptr;
};

/// Several counts that are summed together.
struct alignas(8) Count2 {
  std::uint32_t a, b;
};
struct alignas(16) Count4 {
  std::uint32_t a, b, c, d;
};

/// One feature of a batch: where its vectors are in the output. A pooled feature has one vector per
/// example; a sequence has max_length of them, one after the other.
struct BagFeature {
  std::int64_t first_vector;  // number of its first output vector, after those of earlier features
  std::int64_t column;  // where its vectors begin in a row of the output, in elements; 4 | column
  Pooling pooling;
  std::int32_t vectors_per_row;  // 1; for a sequence max_length
};

/// A bag of more ids is long: a few lanes that went through its ids alone would keep the whole
/// batch waiting.
inline constexpr std::int64_t kMaxShortBag = 256;

/// The ids of a batch, all of one row layout. Device memory.
struct Bags {
  const Key* keys = nullptr;  // [num_ids]; table numbers below kMaxTables - 1
  const std::int64_t* offsets =
      nullptr;                     // [num_features * num_examples + 1] into keys; by feature first
  const float* weights = nullptr;  // [num_ids]; nullptr: all 1
  const BagFeature* features = nullptr;     // [num_features]
  const std::int32_t* long_bags = nullptr;  // [num_long_bags] all long bags, by feature first
  std::int64_t num_ids = 0;
  std::int64_t num_examples = 0;
  std::int64_t num_features = 0;
  std::int64_t num_vectors = 0;    // of all features
  std::int64_t num_long_bags = 0;  // 0 is allowed whatever the bags, and only slower
  std::int64_t row_stride = 0;     // of the output and its gradient, in elements; 4 | row_stride
};

/// The tag of ids that are not used: it sorts after all others.
inline constexpr std::uint64_t kUnusedTag = ~std::uint64_t{0};

/// The place of an id: its vector in the output, in quads, or kNoTarget; and its factor there.
struct alignas(8) IdPlace {
  std::uint32_t target;
  float coefficient;
};

struct PlanCounts {
  std::uint32_t unique;       // distinct keys
  std::uint32_t set_runs;     // distinct sets they belong to
  std::uint32_t occurrences;  // ids that are used: all but those beyond a sequence's max_length
  std::uint32_t longs, chunks, groups;  // of segments longer than kSumChunk, see operations.h
};

/// The plan of one batch: its distinct keys and where each occurs. Device memory; only num_ids is
/// known to the host. What is marked (scratch) is shared with the plans of other batches.
/// Occurrence j is the j-th id in the order of (tag, position).
struct PlanView {
  std::int64_t max_ids = 0;
  std::int64_t num_ids = 0;
  PlanCounts* counts = nullptr;  // [1]

  // Per id, in the order of the batch.
  std::uint64_t* id_tags = nullptr;      // [max_ids] (scratch)
  std::uint32_t* id_prefixes = nullptr;  // [max_ids] the first bits of its tag (scratch)
  IdPlace* id_places = nullptr;          // [max_ids] (scratch)
  float* coefficients = nullptr;         // [max_ids] its factor in its vector
  std::int32_t* unique_of = nullptr;     // [max_ids] number of its key; -1: not used

  // Per occurrence.
  std::uint64_t* sorted_tags = nullptr;         // [max_ids] (scratch)
  std::uint32_t* positions = nullptr;           // [max_ids] number of the id (scratch)
  std::uint32_t* occurrence_targets = nullptr;  // [max_ids] as IdPlace::target
  float* occurrence_coefficients = nullptr;     // [max_ids]

  // Per distinct key, ascending by tag, hence grouped by set.
  std::uint64_t* unique_tags = nullptr;  // [max_ids]
  std::uint32_t* segments = nullptr;     // [max_ids + 1] its occurrences
  std::int32_t* slots = nullptr;         // [max_ids] its slot; -1: none. Filled by resolve.
  std::uint32_t* set_runs = nullptr;     // [max_ids + 1] first key of every set that occurs

  // Segments longer than kSumChunk.
  std::uint32_t* long_unique = nullptr;  // [max_longs] number of the key
  std::uint32_t* long_chunks = nullptr;  // [max_longs + 1] its chunks
  std::uint32_t* long_groups = nullptr;  // [max_longs + 1] its groups of chunks

  // Scratch.
  std::uint32_t* scratch_positions = nullptr;  // [max_ids]
  std::uint32_t* sorted_prefixes = nullptr;    // [max_ids]
  std::uint32_t* mixed_runs = nullptr;         // [max_ids / 32 + 1] a bit for each occurrence: 1
                                               // if another tag of its prefix follows, and none
                                               // came before
  Count2* counts2 = nullptr;                   // [max_ids] keys and sets up to an occurrence
  Count4* counts4 = nullptr;                   // [max_ids / 64 + 1]
  void* prims_scratch = nullptr;
  std::int64_t prims_scratch_bytes = 0;
  float* partial_sums = nullptr;  // [max_chunks, padded_dim]
  float* group_sums = nullptr;    // [max_groups, padded_dim]
};

enum class EvictionPolicy : std::uint8_t {
  kLru,        // the row needed longest ago, by batch number
  kLfu,        // the row with the fewest occurrences since admission; among equals as kLru
  kLookahead,  // the row that no batch of the window needs, among those as kLfu; if the window
               // needs all of them, the one it needs last
};

/// Whether a row in the cache differs from the one it was admitted from. An update makes it
/// kChanged; gather_rows makes a changed row kGathered, and mark_clean a gathered one kClean.
inline constexpr std::uint8_t kClean = 0, kChanged = 1, kGathered = 2;

/// A set-associative cache of rows: slot = set * 32 + way.
struct CacheView {
  RowLayout layout;
  CacheSize size;
  EvictionPolicy policy = EvictionPolicy::kLru;
  std::byte* rows = nullptr;             // [total_slots, layout.device_stride]
  std::uint64_t* tags = nullptr;         // [num_slots]
  std::uint8_t* digests = nullptr;       // [num_slots] a byte of the tag; 0: empty
  std::uint32_t* last_needed = nullptr;  // [num_slots] number of a batch
  std::uint32_t* frequency = nullptr;    // [num_slots] occurrences; not kept under kLru
  std::uint32_t* next_use = nullptr;     // [num_slots] under kLookahead: number of the next batch
                                         // that is known to need the row; none if it is past
  std::uint8_t* dirty = nullptr;         // [num_slots] kClean, kChanged or kGathered
};

struct WindowSize {
  std::int64_t depth = 0;     // most batches that have been touched and not been resolved
  std::int64_t max_keys = 0;  // of a batch; for keys beyond, no next use is known
  std::int64_t num_sets = 0;  // of the directory, of kWays entries each

  /// For each key of a batch 4 bytes; for each entry of the directory tag 8, batch 4, note 4.
  constexpr std::int64_t bytes() const {
    return depth * max_keys * 4 + num_sets * CacheSize::kWays * 16;
  }
};

/// The batches that have been touched and not been resolved: for each of their keys, the next batch
/// that has it. Batch b notes them in line b % depth, in the order of its plan. A set-associative
/// directory remembers where each key was seen last; where a set is full, it forgets the key seen
/// longest ago. What is forgotten costs misses, and nothing else.
struct WindowView {
  static constexpr std::uint32_t kNoNote = 0xFFFFFFFFU;

  WindowSize size;
  std::uint32_t* next_uses = nullptr;  // [depth, max_keys] number of a batch; 0: none is known
  std::uint64_t* tags = nullptr;       // [num_sets * kWays]
  std::uint32_t* batches = nullptr;    // [num_sets * kWays] the last that has the key; 0: no key
  std::uint32_t* notes = nullptr;      // [num_sets * kWays] where in next_uses that batch notes the
                                       // key's next use; kNoNote: beyond max_keys
};

struct ResolveCounts {
  std::uint32_t misses;
  std::uint32_t writebacks;  // dirty rows that were evicted
  std::uint32_t overflows;   // misses that found their set full of pinned rows
  std::uint32_t hits;
};

/// The result of resolve: rows to fetch, and rows to save before that. Device memory, to be read by
/// the host: copy the counts, then as much of the lists as the counts say.
struct MissView {
  ResolveCounts* counts = nullptr;          // [1]
  Key* miss_keys = nullptr;                 // [max_ids] in the order of tags
  std::int32_t* miss_slots = nullptr;       // [max_ids] where the row goes; -1: overflow is full
  Key* overflow_keys = nullptr;             // [max_overflow] the key that takes overflow_slots[i]
  Key* writeback_keys = nullptr;            // [max_ids]
  std::int32_t* writeback_slots = nullptr;  // [max_ids] the slot that still holds the row
  // Scratch.
  Count4* tile_counts = nullptr;           // [max_ids / 8 + 1]
  std::uint32_t* record_unique = nullptr;  // [max_ids]
  std::int32_t* record_slot = nullptr;     // [max_ids] -1: overflow
  std::int32_t* record_ordinal = nullptr;  // [max_ids] -1: clean victim or none
  std::uint64_t* record_victim = nullptr;  // [max_ids] tag
};

/// Slots and their keys, in the order of slots.
struct SlotList {
  std::uint32_t* count = nullptr;  // [1]
  std::int32_t* slots = nullptr;   // [capacity]
  Key* keys = nullptr;             // [capacity]
  Count4* set_counts = nullptr;    // scratch: [num_sets listed]
  void* prims_scratch = nullptr;
  std::int64_t prims_scratch_bytes = 0;
};

}  // namespace satrap::backend
