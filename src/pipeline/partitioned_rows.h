#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "satrap/backend/device_matrix.h"
#include "satrap/collective/communicator.h"
#include "satrap/collective/device_communicator.h"
#include "satrap/core/thread_pool.h"
#include "satrap/embedding/batch_by_key.h"
#include "satrap/embedding/cached_rows.h"
#include "satrap/embedding/row_access.h"
#include "satrap/pipeline/cluster.h"
#include "src/pipeline/key_exchange.h"

namespace satrap::pipeline {

/// The caches of all ranks as one: each rank owns the keys of a range of mixed ids
/// (table::shard_of), keeps their rows in its own cache and is their only writer. In every step the
/// ranks send the keys of their batches to the owners, which send the weights back before they are
/// pooled and get a gradient for each key. The owner adds those of equal keys in the order of the
/// ranks, before the optimizer sees them, so that the results are the same bits in every run.
///
/// Weights and gradients are in the memory of the caches' devices, and what is done with them is
/// queued on the stream of the cache. With `device_ranks` that is so of their exchange, too; else
/// it goes by way of the hosts, and blocks.
///
/// Calls wait for the other ranks: all ranks must look ahead, plan, pool and update in one order,
/// and skip the same calls. Every wait has the cluster's deadline; a rank that dies or stops ends
/// those of the others with NetError; what they have queued on devices ends at that deadline.
class PartitionedRows final : public embedding::RowAccess {
 public:
  static constexpr std::int64_t kMaxRanks = 64;  // whose gradients are added in their order

  /// `owned`: the cache of this rank. `device_ranks`: nullptr on all ranks, or on none. All outlive
  /// it. Blocks until all ranks are there.
  PartitionedRows(embedding::CachedRows& owned,
                  Cluster& cluster,
                  collective::DeviceCommunicator* device_ranks);
  ~PartitionedRows() override;

  const embedding::FeatureLayout& layout() const override { return owned_.layout(); }
  const embedding::DeviceRows* on_device() const override { return owned_.on_device(); }
  ThreadPool& pool() const override { return owned_.pool(); }

  std::unique_ptr<embedding::BatchRows> make_rows() override;

  /// Past the caches: what all ranks have flushed before.
  embedding::RowAccess& reader() override { return owned_.reader(); }

  /// The ranks may differ in it, and must agree on what they read. look_at() waits for the others.
  std::int64_t look_ahead() const override { return owned_.look_ahead(); }
  void look_at(const data::Batch& batch, std::int64_t step) override;
  void stop() override;

  /// Before the cache of this rank is destroyed, whose threads still meet(): gives up what is in
  /// it.
  void leave() { batch_ahead_.reset(); }

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

  /// The vectors of a table group: those that this rank asked for, by owner, and those that others
  /// asked of it, by rank. Weights, then gradients.
  struct Vectors {
    std::int64_t width;  // of one
    backend::DeviceMatrix asked = {}, lent = {};
  };
  void exchange(const float* to,
                std::span<const std::int64_t> to_counts,  // values, by rank
                float* from,
                std::span<const std::int64_t> from_counts);

  embedding::CachedRows& owned_;
  Cluster& cluster_;
  collective::DeviceCommunicator* const device_ranks_;
  // One for each thread that exchanges: the planner's, the rows' and that of meet().
  const std::unique_ptr<collective::Communicator> keys_, rows_, saves_;

  // Used by the planner's thread: a batch ahead, until leave().
  std::optional<embedding::BatchByKey> batch_ahead_;
  KeyExchange keys_ahead_;

  // Used by the rows' thread.
  std::vector<Vectors> vectors_;  // [num_groups] of the step that is queued
  std::vector<float> on_host_;    // what is exchanged, of a device that is not the host
};

}  // namespace satrap::pipeline
