#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "satrap/backend/device_matrix.h"
#include "satrap/collective/communicator.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/row_access.h"
#include "satrap/job/feature_spec.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/table/table_spec.h"
#include "src/pipeline/key_exchange.h"

namespace satrap::pipeline {

/// The caches of all ranks of a node as one: each rank owns the keys of a range of mixed ids
/// (table::shard_of), keeps their rows in its own cache and is their only writer. In every step the
/// ranks send the keys of their batches to the owners, which send the weights back before they are
/// pooled and get a gradient for each key. The owner adds those of equal keys in the order of the
/// ranks, before the optimizer sees them, so that the results are the same bits in every run.
///
/// With `device_ranks` weights and gradients stay in the memory of the ranks' GPUs, and what is
/// done with them is queued on the stream of the caches.
///
/// Calls wait for the other ranks: all ranks must look ahead, plan, pool and update in one order,
/// and skip the same calls. Every wait has the cluster's deadline; a rank that dies or stops ends
/// those of the others with NetError; what they have queued on devices ends at that deadline.
class PartitionedRows final : public embedding::RowAccess {
 public:
  static constexpr std::int64_t kMaxRanks = 64;  // whose gradients are added in their order

  /// `tables[i]` has TableId i. `owned`: the cache of this rank. `device_ranks`: nullptr on all
  /// ranks, or on none. All outlive it. Blocks until all ranks are there.
  PartitionedRows(const std::vector<job::FeatureSpec>& features,
                  const std::vector<table::TableSpec>& tables,
                  embedding::CachedRows& owned,
                  embedding::RowAccess& uncached,
                  Cluster& cluster,
                  ThreadPool& pool,
                  collective::DeviceCommunicator* device_ranks);
  ~PartitionedRows() override;

  const embedding::FeatureLayout& layout() const override { return layout_; }
  const embedding::DeviceRows* on_device() const override {
    return device_ranks_ == nullptr ? nullptr : owned_.on_device();
  }
  ThreadPool& pool() const override { return pool_; }

  /// Their read() reads past the caches: what all ranks have flushed before.
  std::unique_ptr<embedding::BatchRows> make_rows() override;

  /// The ranks may differ in it, and must agree on what they read. look_at() waits for the others.
  std::int64_t look_ahead() const override { return owned_.look_ahead(); }
  void look_at(const data::Batch& batch, std::int64_t step) override;
  void stop() override;

  /// Blocks until all ranks have called it: for the threads that bring rows back to the store. What
  /// they bring is right, or it throws.
  void meet() {
    throw_if_failed();
    saves_->barrier(cluster_.deadline());
  }

  /// Throws if rows that have been updated by now may be wrong: what devices exchanged has failed.
  void throw_if_failed() const {
    if (device_ranks_ != nullptr) device_ranks_->throw_if_failed();
  }

 private:
  class Rows;
  class RowsOnDevice;
  std::unique_ptr<embedding::BatchRows> make_rows_on_device();

  /// The vectors of a row group: those that this rank asked for, by owner, and those that others
  /// asked of it, by rank. Weights, then gradients.
  struct Vectors {
    std::int64_t width;  // of one
    std::vector<float> asked = {}, lent = {};
    backend::DeviceMatrix device_asked = {}, device_lent = {};  // instead
  };
  void exchange(std::size_t group,
                std::span<const float> to,
                std::span<const std::int64_t> to_counts,
                std::span<float> from,
                std::span<const std::int64_t> from_counts);

  const embedding::FeatureLayout layout_;
  embedding::CachedRows& owned_;
  embedding::RowAccess& uncached_;
  Cluster& cluster_;
  ThreadPool& pool_;
  collective::DeviceCommunicator* const device_ranks_;
  std::vector<std::int64_t> dims_;  // [num_tables]
  const KeyOwners owners_;
  // One for each thread that exchanges: the planner's, the rows' and that of meet().
  const std::unique_ptr<collective::Communicator> keys_, rows_, saves_;

  // Of the planner's thread: a batch ahead.
  embedding::Planner planner_;
  embedding::Plan plan_ahead_;
  KeyExchange keys_ahead_;

  // Of the rows' thread.
  std::vector<Vectors> vectors_;  // [num_groups]
  std::vector<const std::byte*> addresses_;
  std::vector<float*> gradients_;
  std::vector<float> scratch_;
};

}  // namespace satrap::pipeline
