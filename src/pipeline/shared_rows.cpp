#include "satrap/pipeline/shared_rows.h"

#include <algorithm>
#include <optional>

namespace satrap::pipeline {
class SharedRows::Rows final : public embedding::BatchRows {
 public:
  explicit Rows(SharedRows& access)
      : BatchRows(access.layout()), access_(access), copies_(access.cache_.make_batch()) {}

  void make_plan(embedding::Planner&, const data::Batch& batch, std::int64_t step) override {
    is_read_ = false;
    copies_->make_plan(batch, step);
  }

  void request(std::int64_t step, std::int64_t least_version) override {
    using embedding::SharedBatch;
    copies_->resolve();
    ages_.clear();
    for (const std::int64_t version : copies_->versions()) {
      ages_.push_back(version == SharedBatch::kNoCopy     ? ps::kNoCopy
                      : version == SharedBatch::kOnItsWay ? ps::kUnknownAge
                                                          : ps::copy_age(step, version));
    }
    access_.client_.pull_changed(step, copies_->keys(), ages_, rows_, least_version);
  }

  /// The answer is as old as the oldest of its rows, kept copies included.
  std::optional<std::int64_t> wait() override {
    access_.client_.wait(rows_);
    return std::min(rows_.read_version(), copies_->take(rows_.weights(), rows_.versions()));
  }
  std::optional<std::int64_t> answered_version() const override { return rows_.read_version(); }

  void read(embedding::Planner& planner, const data::Batch& batch) override {
    if (!reader_) reader_ = access_.uncached_.make_rows();
    reader_->read(planner, batch);
    is_read_ = true;
  }

  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override {
    is_read_ ? reader_->pool(batch, pooled, mask) : copies_->pool(batch, pooled, mask);
  }

  void wait_taken() override { access_.client_.wait_pushed(rows_); }

 protected:
  std::int64_t num_examples() const override { return copies_->num_examples(); }

  void apply(const float* grad_pooled, std::int64_t step) override {
    access_.client_.prepare_push(rows_);
    copies_->sum_gradients(grad_pooled, rows_.gradients());
    access_.client_.push(step, rows_, false);
  }
  void skip(std::int64_t step) override {
    access_.client_.prepare_push(rows_);
    access_.client_.push(step, rows_, true);
  }

 private:
  SharedRows& access_;
  const std::unique_ptr<embedding::SharedBatch> copies_;
  ps::StepRows rows_;
  std::vector<ps::CopyAge> ages_;
  bool is_read_ = false;                          // else planned
  std::unique_ptr<embedding::BatchRows> reader_;  // past the copies
};

SharedRows::SharedRows(const std::vector<job::FeatureSpec>& features,
                       const std::vector<table::TableSpec>& tables,
                       ps::ShardClient& client,
                       backend::Device& device,
                       ThreadPool& pool,
                       const embedding::SharedCache::Options& options)
    : client_(client),
      uncached_(features, tables, client, pool),
      cache_(features, tables, device, pool, options) {}

std::unique_ptr<embedding::BatchRows> SharedRows::make_rows() {
  return std::make_unique<Rows>(*this);
}

embedding::CacheCounts SharedRows::counts() const {
  embedding::CacheCounts counts = cache_.counts();
  counts.bytes_fetched = client_.bytes_pulled();
  return counts;
}

void SharedRows::stop() {
  cache_.stop();
  client_.stop();
}

}  // namespace satrap::pipeline
