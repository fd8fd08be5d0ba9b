#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "satrap/backend/stream.h"
#include "satrap/backend/stream_times.h"
#include "satrap/core/float_matrix.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/embedding/batch_plan.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/embedding/planner.h"

namespace satrap::embedding {

/// Tells the update of a step whether to skip its work, in the memory where it runs.
struct SkipFlag {
  const float* value =
      nullptr;  // not 0: the step leaves all rows unchanged; nullptr: never skipped
  Place place = Place::kHost;
};

/// Rows in the memory of a device, for a network that computes there too: what one of them queues
/// comes before what the other queues later.
struct DeviceRows {
  backend::Device& device;
  const backend::Stream& stream;          // of lookups and updates
  const FeatureLayout& layout;            // of pooled rows and their gradient
  ThreadPool& pool;                       // for copies between its columns and the host's
  backend::StreamTimes* times = nullptr;  // of the stream, unless null
};

/// The rows that one batch needs in a step: planned, requested, waited for, pooled and updated. The
/// outputs have the same bits wherever the rows are. Created by a RowAccess and reused from step to
/// step without allocating; used by one thread at a time.
///
/// Calls on several objects of one RowAccess: plan() and read() by one thread at a time per
/// planner, plan() and request() in the order of steps; wait() and pool() in the order of steps;
/// update() in the order of steps; wait_taken() in the order of updates. These may run at the same
/// time, except where a RowAccess says otherwise. Loops run on the pool of the RowAccess; results
/// do not depend on its size.
class BatchRows {
 public:
  virtual ~BatchRows() = default;
  BatchRows(const BatchRows&) = delete;
  BatchRows& operator=(const BatchRows&) = delete;

  /// Finds which rows the batch needs for the training of `step`, from 1. The batch may be empty;
  /// batch.num_features must equal the layout's.
  virtual void make_plan(Planner& planner, const data::Batch& batch, std::int64_t step) = 0;

  /// Asks for the rows if they are in other processes: with the updates of steps up to
  /// `least_version` at least, where the training mode leaves that open. Returns at once.
  virtual void request(std::int64_t step, std::int64_t least_version = 0) = 0;

  /// Blocks until the rows have arrived. Returns v if their owner reports it: the rows contain all
  /// updates of steps up to v.
  virtual std::optional<std::int64_t> wait() = 0;

  /// For evaluation: plan, request and wait in one call, for the rows as they are now. Creates
  /// none: a missing row is read with its initial values. Only the rows that RowAccess::reader()
  /// makes can do it.
  virtual void read(Planner& planner, const data::Batch& batch);

  /// Gathers the rows of the batch that was planned or read, and pools them into the input of the
  /// dense network. Overwrites both outputs. Columns: FeatureLayout; mask: 1 where a sequence has
  /// an element, 0 where it is padded. `pooled` in a device's memory, with the columns of
  /// RowAccess::on_device(), which is not null then: the work is queued there.
  virtual void pool(const data::Batch& batch,
                    const FloatMatrix& pooled,           // [num_examples, output_width]
                    const FloatMatrix& mask) const = 0;  // [num_examples, mask_width]

  /// Sums the gradient of each key over its occurrences (order: kernels/sum_order.h) and has its
  /// table's optimizer applied with the learning rate of `step`. If `skip` says to skip, the rows
  /// stay unchanged and the gradient is not read. Gradient and flag are where pool() has put its
  /// output; in a device's memory the work is queued there.
  void update(const ConstFloatMatrix& grad_pooled,  // [num_examples, output_width], no padding
              std::int64_t step,
              SkipFlag skip = {});

  /// Blocks until the owner of the rows, if that is another process, has received the update; this
  /// object may then be reused.
  virtual void wait_taken() {}

 protected:
  /// `layout` outlives it.
  explicit BatchRows(const FeatureLayout& layout) : layout_(layout) {}

  virtual std::int64_t num_examples() const = 0;  // of the batch that was planned or read
  virtual void apply(const float* grad_pooled, std::int64_t step) = 0;
  virtual void skip(std::int64_t step) = 0;  // instead of apply

  /// Instead of both, with a gradient and a flag (or nullptr) in a device's memory.
  virtual void queue_update(const ConstFloatMatrix& grad_pooled,
                            std::int64_t step,
                            const float* flag);

  const FeatureLayout& layout_;
};

/// A BatchRows whose rows have addresses in the host's memory: it pools by a BatchPlan, on all
/// threads.
class PlannedRows : public BatchRows {
 public:
  const BatchPlan& plan() const { return plan_; }

  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;

 protected:
  /// Both outlive it.
  PlannedRows(const FeatureLayout& layout, ThreadPool& pool) : BatchRows(layout), pool_(pool) {}

  std::int64_t num_examples() const override { return plan_.num_examples; }

  /// The address of each unique key's row for pool(), and the offset of the weights in it.
  struct Addresses {
    std::span<const std::byte* const> rows;  // [num_unique]
    std::int64_t weights_offset;             // bytes
  };
  virtual Addresses addresses() const = 0;

  ThreadPool& pool_;
  BatchPlan plan_;
};

/// Gives a job's batches access to their rows: in tables of this process (TableRows), on shards
/// (pipeline::ShardRows), or in a cache before either (CachedRows).
class RowAccess {
 public:
  virtual ~RowAccess() = default;

  /// Columns of the pooled rows; the weights' types are those that pool() reads.
  virtual const FeatureLayout& layout() const = 0;

  /// The device where rows of training are pooled and updated, if the network there can have
  /// them; nullptr: the host's memory. Rows that are read for evaluation always are.
  virtual const DeviceRows* on_device() const { return nullptr; }

  /// The pool for its loops, and for planners.
  virtual ThreadPool& pool() const = 0;

  /// The RowAccess must outlive them.
  virtual std::unique_ptr<BatchRows> make_rows() = 0;

  /// The access whose rows read for evaluation: this one, or the one behind a cache, which has what
  /// the cache has flushed.
  virtual RowAccess& reader() { return *this; }

  /// How many batches it wants to be shown before they are planned; 0: none. May change. Planner
  /// thread.
  virtual std::int64_t look_ahead() const { return 0; }

  /// Shows it the batch of `step`. Batches are shown in the order of steps, each before it is
  /// planned. Planner thread.
  virtual void look_at(const data::Batch&, std::int64_t /*step*/) {}

  /// Ends all waiting in its batches with an error, before they have got what they wait for. From
  /// any thread.
  virtual void stop() = 0;
};

}  // namespace satrap::embedding
