#include "src/pipeline/partitioned_rows.h"

#include <exception>
#include <utility>

#include "satrap/core/error.h"
#include "src/pipeline/parts_of_ranks.h"

namespace satrap::pipeline {

// ------------------------------------------------------------------------------ rows of a batch

class PartitionedRows::Rows final : public embedding::BatchRows {
 public:
  explicit Rows(PartitionedRows& access)
      : BatchRows(access.layout()),
        access_(access),
        batch_(access.owned_),
        keys_(access.vectors_.size(), *access.keys_) {}

  void make_plan(embedding::Planner&, const data::Batch& batch, std::int64_t) override {
    batch_.make_plan(batch);
  }

  void request(std::int64_t step, std::int64_t) override {
    or_close([&] {
      keys_.exchange(batch_.keys(), num_examples(), access_.cluster_.deadline());
      batch_.set_places(keys_.places());
      batch_.request(step, keys_.lent(), keys_.num_examples());
    });
  }

  std::optional<std::int64_t> wait() override {
    or_close([&] { batch_.wait(); });
    return std::nullopt;
  }

  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;

 protected:
  std::int64_t num_examples() const override { return batch_.num_examples(); }
  void apply(const float* grad_pooled, std::int64_t step) override {
    const std::int64_t n = num_examples(), width = layout_.output_width;
    const std::span values(grad_pooled, static_cast<std::size_t>(n * width));
    queue_update(host_matrix(values, n, width), step, nullptr);
    access_.owned_.device_rows().stream.wait_until_idle();  // the gradient is the caller's again
  }
  void skip(std::int64_t step) override { batch_.skip(step); }
  void queue_update(const ConstFloatMatrix& grad_pooled,
                    std::int64_t step,
                    const float* flag) override;

 private:
  /// A step that fails here is never queued whole: what this rank has queued must not wait for the
  /// others, nor its threads for that.
  template <class Action>
  void or_close(const Action& action) {
    try {
      action();
    } catch (...) {
      if (access_.device_ranks_ != nullptr) access_.device_ranks_->close(std::current_exception());
      throw;
    }
  }
  void make_room() const;
  void exchange(const std::vector<float*>& to,
                const std::vector<float*>& from,
                bool to_owners) const;

  PartitionedRows& access_;
  embedding::BatchByKey batch_;
  KeyExchange keys_;
  // [num_groups], vectors of the step that is queued.
  mutable std::vector<float*> asked_, lent_;
  mutable std::vector<std::int64_t> to_counts_, from_counts_;  // [num_ranks] values of a group
};

/// The vectors of the step that is queued next: they are used in the order of the stream.
void PartitionedRows::Rows::make_room() const {
  asked_.clear();
  lent_.clear();
  backend::Device& device = access_.owned_.device_rows().device;
  device.use_on_this_thread();
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    vectors.asked.resize(device, sum_of(keys_.asked_of(g)), vectors.width);
    vectors.lent.resize(device, sum_of(keys_.lent_to(g)), vectors.width);
    asked_.push_back(vectors.asked.data());
    lent_.push_back(vectors.lent.data());
  }
}

/// All ranks call it for the groups in their order.
void PartitionedRows::Rows::exchange(const std::vector<float*>& to,
                                     const std::vector<float*>& from,
                                     bool to_owners) const {
  const backend::StreamTimes::Span span(access_.owned_.device_rows().times,
                                        backend::StreamTimes::kExchange);
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    const std::int64_t width = access_.vectors_[g].width;
    const auto values_of = [&](std::span<const std::int64_t> counts,
                               std::vector<std::int64_t>& out) {
      out.clear();
      for (const std::int64_t count : counts) out.push_back(count * width);
    };
    values_of(to_owners ? keys_.asked_of(g) : keys_.lent_to(g), to_counts_);
    values_of(to_owners ? keys_.lent_to(g) : keys_.asked_of(g), from_counts_);
    access_.exchange(to[g], to_counts_, from[g], from_counts_);
  }
}

void PartitionedRows::Rows::pool(const data::Batch& batch,
                                 const FloatMatrix& pooled,
                                 const FloatMatrix& mask) const {
  make_room();
  batch_.gather(lent_);
  exchange(lent_, asked_, false);
  batch_.pool(batch, asked_, pooled, mask);
}

void PartitionedRows::Rows::queue_update(const ConstFloatMatrix& grad_pooled,
                                         std::int64_t step,
                                         const float* flag) {
  make_room();
  batch_.sum_gradients(grad_pooled, asked_);
  exchange(asked_, lent_, true);
  batch_.update(lent_, step, flag);
}

// ----------------------------------------------------------------------------------- all batches

PartitionedRows::PartitionedRows(embedding::CachedRows& owned,
                                 Cluster& cluster,
                                 collective::DeviceCommunicator* device_ranks)
    : owned_(owned),
      cluster_(cluster),
      device_ranks_(device_ranks),
      keys_(cluster.make_communicator("cache-keys")),
      rows_(cluster.make_communicator("cache-rows")),
      saves_(cluster.make_communicator("cache-save")),
      batch_ahead_(std::in_place, owned),
      keys_ahead_(owned.groups().size(), *keys_) {
  SATRAP_CHECK(cluster.size() <= kMaxRanks, cluster.size(), " ranks");
  for (const embedding::TableGroup* const group : owned.groups()) {
    vectors_.push_back({.width = group->layout.padded_dim});
  }
}

PartitionedRows::~PartitionedRows() = default;

std::unique_ptr<embedding::BatchRows> PartitionedRows::make_rows() {
  return std::make_unique<Rows>(*this);
}

void PartitionedRows::look_at(const data::Batch& batch, std::int64_t step) {
  if (!owned_.looks_ahead()) return;
  batch_ahead_->make_plan(batch);
  keys_ahead_.exchange(batch_ahead_->keys(), batch.num_examples, cluster_.deadline());
  owned_.look_at(keys_ahead_.lent(), keys_ahead_.num_examples(), step);
}

void PartitionedRows::stop() {
  keys_->close();
  rows_->close();
  saves_->close();
  if (device_ranks_ != nullptr) device_ranks_->close();
  owned_.stop();
}

void PartitionedRows::exchange(const float* to,
                               std::span<const std::int64_t> to_counts,
                               float* from,
                               std::span<const std::int64_t> from_counts) {
  backend::Device& device = owned_.device_rows().device;
  const backend::Stream& stream = owned_.device_rows().stream;
  if (device_ranks_ != nullptr) {
    return device_ranks_->all_to_all(to, to_counts, from, from_counts, stream);
  }
  const std::int64_t num_sent = sum_of(to_counts), num_got = sum_of(from_counts);
  constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
  float* into = from;
  if (!device.is_host()) {
    on_host_.resize(static_cast<std::size_t>(num_sent + num_got));
    into = on_host_.data() + num_sent;
    device.copy(on_host_.data(), to, num_sent * kFloatBytes, stream);
    stream.wait_until_idle();
    to = on_host_.data();
  }
  pipeline::exchange(*rows_, std::span(to, static_cast<std::size_t>(num_sent)), to_counts,
                     std::span(into, static_cast<std::size_t>(num_got)), from_counts,
                     cluster_.deadline());
  if (into == from) return;
  device.copy(from, into, num_got * kFloatBytes, stream);
  stream.wait_until_idle();
}

}  // namespace satrap::pipeline
