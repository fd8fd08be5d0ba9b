#include "satrap/embedding/table_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "satrap/embedding/feature_layout.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "src/embedding/index.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

std::vector<table::TableSpec> specs_of(const std::vector<table::Table*>& tables) {
  std::vector<table::TableSpec> specs;
  for (const table::Table* table : tables) specs.push_back(table->spec());
  return specs;
}

std::span<const Key> keys_of(const BatchPlan& plan, const BatchPlan::Range& range) {
  return std::span(plan.keys).subspan(index(range.begin), index(range.end - range.begin));
}

std::span<const table::RowPointer> rows_of(const std::vector<table::RowPointer>& rows,
                                           const BatchPlan::Range& range) {
  return std::span(rows).subspan(index(range.begin), index(range.end - range.begin));
}

}  // namespace

/// State shared by the updates of all batches, which run one at a time.
class TableRows::Updates {
 public:
  Updates(const std::vector<job::FeatureSpec>& features,
          std::vector<table::Table*> all,
          ThreadPool& threads)
      : tables(std::move(all)), layout(features, specs_of(tables)), pool(threads) {
    for (const table::Table* table : tables) max_dim_ = std::max(max_dim_, table->spec().dim);
  }

  void apply(const BatchPlan& plan,
             const std::vector<table::RowPointer>& rows,
             const float* grad,
             std::int64_t step) {
    steps_.clear();
    for (const table::Table* table : tables) steps_.push_back(table->table_step(step));
    const std::int64_t num_units = std::ssize(plan.update_units) - 1;
    row_floats_.resize(index(num_units * kRowFloats * max_dim_));
    pool.parallel_for(num_units, [&](std::int64_t unit) {
      for (std::int64_t r = plan.update_units[index(unit)]; r < plan.update_units[index(unit + 1)];
           ++r) {
        const BatchPlan::Range& range = plan.ranges[index(r)];
        const table::TableSpec& spec = tables[static_cast<std::size_t>(range.table)]->spec();
        with_optimizer(spec.optimizer.type, [&](auto type) {
          with_dim(spec.dim, [&](auto dim) {
            float* const floats = row_floats_.data() + unit * kRowFloats * max_dim_;
            update_range<type()>(plan, range, rows, grad, step, floats, floats + max_dim_, dim);
          });
        });
      }
    });
    note_applied(step);
  }

  void skip(const BatchPlan& plan, const std::vector<table::RowPointer>& rows, std::int64_t step) {
    for (const BatchPlan::Range& range : plan.ranges) {
      table::Table& table = *tables[static_cast<std::size_t>(range.table)];
      table.skip_partition(range.partition, step, rows_of(rows, range));
      table.apply_sightings(step, keys_of(plan, range), rows_of(rows, range));
    }
    note_applied(step);
  }

  const std::vector<table::Table*> tables;
  const FeatureLayout layout;
  ThreadPool& pool;

 private:
  void note_applied(std::int64_t step) {
    for (table::Table* table : tables) table->note_applied(step);
  }

  template <RowOptimizerType kType, class Dim>
  void update_range(const BatchPlan& plan,
                    const BatchPlan::Range& range,
                    const std::vector<table::RowPointer>& all_rows,
                    const float* grad,
                    std::int64_t step,
                    float* row_gradient,  // [dim]
                    float* scratch,       // [2, dim]
                    Dim dim) {
    table::Table& table = *tables[static_cast<std::size_t>(range.table)];
    const TableStep& table_step = steps_[static_cast<std::size_t>(range.table)];
    const std::int64_t distance = gather_distance(dim);
    const std::int64_t row_bytes = table.row_bytes();
    const RowLayout& row_layout = table.layout();
    const std::int64_t num_unique = plan.num_unique();
    const Occurrences occurrences = occurrences_of(plan, grad);
    const auto rows = rows_of(all_rows, range);
    table.update_partition(range.partition, step, rows, [&](std::int64_t i, table::RowPointer row) {
      const std::int64_t u = range.begin + i;
      if (u + distance < num_unique) prefetch_write(all_rows[index(u + distance)], row_bytes);
      reduce_segment(occurrences, plan.segments[index(u)], plan.segments[index(u + 1)],
                     row_gradient, scratch, dim);
      row_layout.change(row, table_step.rounding_seed, scratch, [&](float* weights, float* state) {
        update_row<kType>(table_step.step, weights, state, row_gradient, dim);
      });
    });
    table.apply_sightings(step, keys_of(plan, range), rows);
  }

  std::int64_t max_dim_ = 0;
  // Kept from step to step.
  std::vector<TableStep> steps_;                 // [num_tables]
  static constexpr std::int64_t kRowFloats = 3;  // its gradient, and scratch of two rows
  std::vector<float> row_floats_;                // [num_units, kRowFloats, max_dim]
};

class TableRows::Rows final : public PlannedRows {
 public:
  explicit Rows(Updates& updates) : PlannedRows(updates.layout, updates.pool), updates_(updates) {}

  void make_plan(Planner& planner, const data::Batch& batch, std::int64_t step) override {
    drop_rows_beyond_limits(step);
    make_plan_with(
        planner, batch,
        [step](table::Table& table, std::span<const Key> keys, std::span<table::RowPointer> rows) {
          table.find_or_insert(keys, rows, step);
        });
  }

  void request(std::int64_t, std::int64_t) override {}
  std::optional<std::int64_t> wait() override { return std::nullopt; }

  void read(Planner& planner, const data::Batch& batch) override {
    make_plan_with(planner, batch,
                   [](const table::Table& table, std::span<const Key> keys,
                      std::span<table::RowPointer> rows) { table.find(keys, rows); });
    fill_missing();
  }

 protected:
  Addresses addresses() const override {
    return {std::span(rows_).first(plan_.keys.size()), sizeof(RowHeader)};
  }
  void apply(const float* grad_pooled, std::int64_t step) override {
    updates_.apply(plan_, rows_, grad_pooled, step);
  }
  void skip(std::int64_t step) override { updates_.skip(plan_, rows_, step); }

 private:
  template <class Find>
  void make_plan_with(Planner& planner, const data::Batch& batch, const Find& find) {
    rows_.resize(std::max(rows_.size(), batch.ids.size()));
    planner.plan(batch, plan_, [&](TableId table, std::span<const Key> keys, std::int64_t first) {
      find(*updates_.tables[static_cast<std::size_t>(table)], keys,
           std::span(rows_).subspan(index(first), keys.size()));
    });
  }

  void drop_rows_beyond_limits(std::int64_t step) {
    for (table::Table* table : updates_.tables) {
      if (!table->spec().limits.any()) continue;
      pool_.parallel_for(table::kPartitions,
                         [&](std::int64_t partition) { table->begin_step(partition, step); });
    }
  }

  /// Creates rows that no table has, for this batch alone.
  void fill_missing() {
    const auto for_each_missing = [&](auto&& visit) {
      for (const BatchPlan::Range& range : plan_.ranges) {
        const table::Table& table = *updates_.tables[static_cast<std::size_t>(range.table)];
        for (std::int64_t u = range.begin; u < range.end; ++u) {
          if (rows_[index(u)] == nullptr) visit(table, u);
        }
      }
    };
    std::int64_t bytes = 0;
    for_each_missing([&](const table::Table& table, std::int64_t) { bytes += table.row_bytes(); });
    missing_.resize(index(bytes));
    std::byte* next = missing_.data();
    for_each_missing([&](const table::Table& table, std::int64_t u) {
      table.fill_missing(plan_.keys[index(u)], next);
      rows_[index(u)] = std::exchange(next, next + table.row_bytes());
    });
  }

  Updates& updates_;
  std::vector<table::RowPointer> rows_;  // [num_unique], and more
  std::vector<std::byte> missing_;
};

TableRows::TableRows(const std::vector<job::FeatureSpec>& features,
                     std::vector<table::Table*> tables,
                     ThreadPool& pool)
    : updates_(std::make_unique<Updates>(features, std::move(tables), pool)) {}

TableRows::~TableRows() = default;

const FeatureLayout& TableRows::layout() const { return updates_->layout; }
ThreadPool& TableRows::pool() const { return updates_->pool; }

std::unique_ptr<BatchRows> TableRows::make_rows() { return std::make_unique<Rows>(*updates_); }

}  // namespace satrap::embedding
