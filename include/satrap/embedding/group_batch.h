#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/backend/memory.h"
#include "satrap/backend/views.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/embedding/table_groups.h"

namespace satrap::embedding {

/// The part of a batch that a device needs for one table group: the bags of the group's features,
/// one feature after the other, with their ids as keys. All groups write into the same pooled
/// output, each at the columns of its features in the FeatureLayout. Owns the memory on host and
/// device and reuses it from batch to batch: it allocates only for a batch larger than all before.
/// One thread at a time.
class GroupBatch {
 public:
  /// `layout` covers all features of the job, in multiples of kDeviceColumns. All four outlive it.
  GroupBatch(backend::Device& device,
             const FeatureLayout& layout,
             const TableGroup& group,
             ThreadPool& pool);

  /// Replaces the batch. No queued work may still read the previous one on the host, nor on the
  /// device, but on the stream of upload(). `batch` covers the whole job, may be empty, and is not
  /// needed once this returns.
  void fill(const data::Batch& batch,
            std::int64_t row_stride);  // of the pooled output and its gradient, in elements: at
                                       // least output_width, a multiple of kDeviceColumns

  /// Replaces the batch by one bag for each key, which is then a row of its own in the output,
  /// [n, padded_dim]. A key may occur several times.
  void fill(std::span<const Key> keys);

  /// Exchanges the batches of two objects of one group, on the host; their memory on the device
  /// stays. The batch is to be uploaded again.
  void exchange(GroupBatch& other) noexcept;

  /// Queues the copy to the device, which reads this object's pinned memory: once per fill() or
  /// exchange().
  void upload(backend::StreamRef stream);

  std::int64_t num_ids() const { return num_ids_; }
  std::int64_t host_bytes() const { return host_.bytes(); }  // of pinned memory
  std::span<const Key> keys() const;                         // [num_ids], of the host
  std::int64_t count_keys() const;                           // that are distinct; sorts them

  /// The batch in device memory, valid until the next fill(): work queued after upload() may use
  /// it. Its ids are in the order of the batch, so a key's gradients are added in the same order as
  /// with a BatchPlan.
  backend::Bags bags() const;

 private:
  /// Addresses of the parts of the batch, in the memory of either side.
  struct Parts {
    Key* keys;                      // [num_ids]
    std::int64_t* offsets;          // [num_features * num_examples + 1]
    backend::BagFeature* features;  // [num_features]
    float* weights;                 // [num_ids]; nullptr: all 1
    std::int32_t* long_bags;        // [num_long_bags]
    std::int64_t bytes;             // of all
  };
  Parts parts_in(std::byte* memory) const;
  std::int64_t num_features() const { return is_of_keys_ ? 1 : std::ssize(group_.features); }
  const PlacedFeature& feature(std::int64_t f) const;
  void measure(const data::Batch& batch, std::int64_t row_stride);
  void list_long_bags(const data::Batch& batch);
  void fill_features();
  void fill_examples(const data::Batch& batch,
                     std::int64_t f,
                     std::int64_t begin,
                     std::int64_t end);

  backend::Device& device_;
  const FeatureLayout& layout_;
  const TableGroup& group_;
  ThreadPool& pool_;

  // The current batch.
  std::int64_t num_ids_ = 0, num_examples_ = 0, row_stride_ = 0;
  bool is_weighted_ = false;
  bool is_of_keys_ = false;              // not of the group's features
  std::vector<std::int64_t> first_ids_;  // [num_features] of its first id in the group
  std::vector<std::int32_t> long_bags_;

  backend::Memory host_, device_memory_;  // pinned; on the device
};

}  // namespace satrap::embedding
