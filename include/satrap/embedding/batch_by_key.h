#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/core/float_matrix.h"
#include "satrap/core/ids.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/cached_rows.h"

namespace satrap::embedding {

class CachedParts;
struct GroupPart;

/// A step of ranks that have the rows of one batch together, each in a cache of its own: this
/// rank's part of the batch, by its distinct keys, and the rows that all ranks need of its cache.
/// Vectors [n, padded_dim] of a table group in the device's memory, weights or gradients, stand for
/// rows of other ranks. What is done with them is queued on the stream of
/// CachedRows::device_rows(). In threads and in the order of calls as BatchRows. Reused from step
/// to step. All batches of a cache are of one kind.
class BatchByKey {
 public:
  /// `cached` outlives it.
  explicit BatchByKey(CachedRows& cached);
  ~BatchByKey();
  BatchByKey(const BatchByKey&) = delete;
  BatchByKey& operator=(const BatchByKey&) = delete;

  /// Lists the distinct keys of the batch. Blocks until what was queued for the last step that it
  /// was used for is done, and until the device has listed them.
  void make_plan(const data::Batch& batch);
  std::int64_t num_examples() const { return num_examples_; }
  std::span<const std::vector<Key>> keys() const { return keys_; }  // [num_groups], in any order

  /// Key u of keys()[g] has vector places[g][u] of its group, each another one. Blocks until the
  /// device has the places.
  void set_places(std::span<const std::vector<std::int32_t>> places);

  /// Asks this cache for the rows of lent[g], those of the g-th of CachedRows::groups(), in any
  /// order; a key may occur several times. `num_examples`: of all batches that need them.
  void request(std::int64_t step,
               std::span<const std::vector<Key>> lent,
               std::int64_t num_examples);

  /// Blocks until the rows have arrived.
  void wait();

  /// Queues copies of the weights of the rows of lent[g] to weights[g].
  void gather(std::span<float* const> weights) const;

  /// Pools the vectors weights[g], at the places of the batch's keys. Outputs: as those of
  /// BatchRows::pool.
  void pool(const data::Batch& batch,
            std::span<const float* const> weights,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const;

  /// Queues the sums of the gradients of each key of the batch, in the order of
  /// kernels/sum_order.h, into gradients[g], at its place. `grad_pooled` may be in the host's
  /// memory, where it stays until they are done.
  void sum_gradients(const ConstFloatMatrix& grad_pooled, std::span<float* const> gradients) const;

  /// Queues the update by a gradient for each of lent[g], whose padding is zero: those of equal
  /// keys are added first, in the order of lent[g]. Nothing is updated if *flag is not 0.
  void update(std::span<const float* const> gradients,
              std::int64_t step,
              const float* flag = nullptr);
  void skip(std::int64_t step);  // instead of update

 private:
  void list_keys();

  RowCache& cached_;
  const std::vector<std::unique_ptr<GroupPart>> parts_;  // of the groups that features read
  const std::unique_ptr<CachedParts> lent_;
  std::int64_t num_examples_ = 0;
  std::vector<std::vector<Key>> keys_;  // [num_groups]
  std::vector<std::uint64_t> tags_;     // what was last read of the device
};

}  // namespace satrap::embedding
