#include "satrap/pipeline/shard_rows.h"

#include <optional>

#include "satrap/embedding/reduce_gradients.h"

namespace satrap::pipeline {
namespace {

/// Tables whose rows come from other processes: as floats, whatever the stored type.
std::vector<table::TableSpec> as_received(std::vector<table::TableSpec> tables) {
  for (table::TableSpec& table : tables) table.weights = FloatType::kFp32;
  return tables;
}

}  // namespace

class ShardRows::Rows final : public embedding::PlannedRows {
 public:
  explicit Rows(ShardRows& access) : PlannedRows(access.layout_, access.pool_), access_(access) {}

  void make_plan(embedding::Planner& planner, const data::Batch& batch, std::int64_t) override {
    planner.plan(batch, plan_);
  }

  void request(std::int64_t step, std::int64_t least_version) override {
    access_.client_.pull(step, plan_.keys, rows_, least_version);
  }

  std::optional<std::int64_t> wait() override {
    access_.client_.wait(rows_);
    return rows_.read_version();
  }

  void read(embedding::Planner& planner, const data::Batch& batch) override {
    planner.plan(batch, plan_);
    access_.client_.lookup(plan_.keys, rows_);
  }

  void wait_taken() override { access_.client_.wait_pushed(rows_); }

 protected:
  Addresses addresses() const override {
    const std::span<const float* const> weights = rows_.weights();
    return {{reinterpret_cast<const std::byte* const*>(weights.data()), weights.size()}, 0};
  }

  void apply(const float* grad_pooled, std::int64_t step) override {
    access_.client_.prepare_push(rows_);
    embedding::reduce_gradients(plan_, access_.dims_, grad_pooled, rows_.gradients(),
                                access_.scratch_, pool_);
    access_.client_.push(step, rows_, false);
  }
  void skip(std::int64_t step) override {
    access_.client_.prepare_push(rows_);
    access_.client_.push(step, rows_, true);
  }

 private:
  ShardRows& access_;
  ps::StepRows rows_;
};

ShardRows::ShardRows(const std::vector<job::FeatureSpec>& features,
                     const std::vector<table::TableSpec>& tables,
                     ps::StepClient& client,
                     ThreadPool& pool)
    : layout_(features, as_received(tables)), client_(client), pool_(pool) {
  for (const table::TableSpec& table : tables) dims_.push_back(table.dim);
}

std::unique_ptr<embedding::BatchRows> ShardRows::make_rows() {
  return std::make_unique<Rows>(*this);
}

}  // namespace satrap::pipeline
