// The rows of a batch that the GPUs of several ranks have together.

#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "src/pipeline/partitioned_rows.h"
#include "src/pipeline/parts_of_ranks.h"

namespace satrap::pipeline {
class PartitionedRows::RowsOnDevice final : public embedding::BatchRows {
 public:
  explicit RowsOnDevice(PartitionedRows& access)
      : BatchRows(access.layout_),
        access_(access),
        batch_(access.owned_.make_batch_by_key()),
        owned_(access.owned_.make_rows_by_key()),
        keys_(access.owners_, *access.keys_),
        places_(access.vectors_.size()) {}

  void make_plan(embedding::Planner&, const data::Batch& batch, std::int64_t) override {
    is_read_ = false;
    num_examples_ = batch.num_examples;
    owned_->begin();  // queued last, of what was queued for the step before
    batch_->make_plan(batch);
  }

  void request(std::int64_t step, std::int64_t) override {
    or_close([&] {
      exchange_keys();
      owned_->request(step, keys_.lent(), keys_.num_examples());
    });
  }

  std::optional<std::int64_t> wait() override {
    or_close([&] { owned_->wait(); });
    return std::nullopt;
  }

  void read(embedding::Planner& planner, const data::Batch& batch) override {
    if (!reader_) reader_ = access_.uncached_.make_rows();
    reader_->read(planner, batch);
    is_read_ = true;
    num_examples_ = batch.num_examples;
  }

  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override;
  void wait_taken() override {}

 protected:
  std::int64_t num_examples() const override { return num_examples_; }
  void apply(const float*, std::int64_t step) override {
    SATRAP_CHECK(false, "step ", step, " has a gradient in the host's memory");
  }
  void skip(std::int64_t step) override { owned_->skip(step); }
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
      access_.device_ranks_->close(std::current_exception());
      throw;
    }
  }
  void exchange_keys();
  void make_room() const;
  void exchange(const std::vector<float*>& to,
                const std::vector<float*>& from,
                bool to_owners) const;
  static std::span<const float* const> read_only(const std::vector<float*>& vectors) {
    return {vectors.data(), vectors.size()};
  }

  PartitionedRows& access_;
  const std::unique_ptr<embedding::BatchByKey> batch_;
  const std::unique_ptr<embedding::RowsByKey> owned_;  // what the ranks ask of this one
  KeyExchange keys_;
  std::vector<Key> all_keys_;                      // of all groups, one after the other
  std::vector<std::vector<std::int32_t>> places_;  // [num_groups] of their vectors
  std::int64_t num_examples_ = 0;
  bool is_read_ = false;               // else planned
  std::unique_ptr<BatchRows> reader_;  // past the caches
  // [num_groups], vectors of the step that is queued.
  mutable std::vector<float*> asked_, lent_;
  mutable std::vector<std::int64_t> to_counts_, from_counts_;  // [num_ranks] values of a group
};

std::unique_ptr<embedding::BatchRows> PartitionedRows::make_rows_on_device() {
  return std::make_unique<RowsOnDevice>(*this);
}

void PartitionedRows::RowsOnDevice::exchange_keys() {
  all_keys_.clear();
  for (const std::vector<Key>& keys : batch_->keys()) {
    all_keys_.insert(all_keys_.end(), keys.begin(), keys.end());
  }
  keys_.exchange(all_keys_, num_examples_, access_.cluster_.deadline());
  std::size_t u = 0;
  for (std::size_t g = 0; g < places_.size(); ++g) {
    places_[g].clear();
    for (std::size_t i = 0; i < batch_->keys()[g].size(); ++i) {
      places_[g].push_back(static_cast<std::int32_t>(keys_.place_of(u++)));
    }
  }
  batch_->set_places(places_);
}

/// The vectors of the step that is queued next: they are used in the order of the stream.
void PartitionedRows::RowsOnDevice::make_room() const {
  asked_.clear();
  lent_.clear();
  backend::Device& device = access_.on_device()->device;
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    vectors.device_asked.resize(device, sum_of(keys_.asked_of(g)), vectors.width);
    vectors.device_lent.resize(device, sum_of(keys_.lent_to(g)), vectors.width);
    asked_.push_back(vectors.device_asked.data());
    lent_.push_back(vectors.device_lent.data());
  }
}

void PartitionedRows::RowsOnDevice::exchange(const std::vector<float*>& to,
                                             const std::vector<float*>& from,
                                             bool to_owners) const {
  const embedding::DeviceRows& device = *access_.on_device();
  const backend::StreamTimes::Span span(device.times, backend::StreamTimes::kExchange);
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    const std::int64_t width = access_.vectors_[g].width;
    const auto values_of = [&](std::span<const std::int64_t> counts,
                               std::vector<std::int64_t>& out) {
      out.clear();
      for (const std::int64_t count : counts) out.push_back(count * width);
    };
    values_of(to_owners ? keys_.asked_of(g) : keys_.lent_to(g), to_counts_);
    values_of(to_owners ? keys_.lent_to(g) : keys_.asked_of(g), from_counts_);
    access_.device_ranks_->all_to_all(to[g], to_counts_, from[g], from_counts_, device.stream);
  }
}

void PartitionedRows::RowsOnDevice::pool(const data::Batch& batch,
                                         const FloatMatrix& pooled,
                                         const FloatMatrix& mask) const {
  if (is_read_) return reader_->pool(batch, pooled, mask);
  make_room();
  owned_->queue_gather(lent_);
  exchange(lent_, asked_, false);
  batch_->pool(batch, read_only(asked_), pooled, mask);
}

void PartitionedRows::RowsOnDevice::queue_update(const ConstFloatMatrix& grad_pooled,
                                                 std::int64_t step,
                                                 const float* flag) {
  make_room();
  batch_->sum_gradients(grad_pooled, asked_);
  exchange(asked_, lent_, true);
  owned_->queue_update(read_only(lent_), step, flag);
}

}  // namespace satrap::pipeline
