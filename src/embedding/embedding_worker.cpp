#include "satrap/embedding/embedding_worker.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "src/embedding/index.h"
#include "src/embedding/planner.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

std::vector<table::TableSpec> specs_of(const std::vector<table::Table*>& tables) {
  std::vector<table::TableSpec> specs;
  for (const table::Table* table : tables) specs.push_back(table->spec());
  return specs;
}

}  // namespace

class EmbeddingWorker::Impl {
 public:
  Impl(const std::vector<job::FeatureSpec>& features,
       std::vector<table::Table*> tables,
       ThreadPool& pool)
      : layout_(features, specs_of(tables)),
        tables_(std::move(tables)),
        pool_(pool),
        planner_(layout_, std::ssize(tables_), tables_, pool_) {
    for (const table::Table* table : tables_) max_dim_ = std::max(max_dim_, table->spec().dim);
  }

  const FeatureLayout& layout() const { return layout_; }
  Planner& planner() { return planner_; }

  void skip(const Plan& plan, std::int64_t step) {
    for (const Plan::Range& range : plan.ranges) {
      const auto rows =
          std::span(plan.rows).subspan(index(range.begin), index(range.end - range.begin));
      table::Table& table = *tables_[static_cast<std::size_t>(range.table)];
      table.skip_partition(range.partition, step, rows);
      table.apply_sightings(step, keys_of(plan, range), rows);
    }
    note_applied(step);
  }

  void forward(const Plan& plan, const data::Batch& batch, float* pooled, float* mask) const {
    pool_rows(layout_, plan, batch, plan.rows.data(), sizeof(RowHeader), pooled, mask, pool_);
  }

  void backward(const Plan& plan, const float* grad, std::int64_t step) {
    steps_.clear();
    for (const table::Table* table : tables_) {
      const table::TableSpec& spec = table->spec();
      steps_.emplace_back(spec.optimizer, spec.schedule.factor(step), step);
    }
    const std::int64_t num_units = std::ssize(plan.update_units) - 1;
    row_floats_.resize(index(num_units * kRowFloats * max_dim_));
    pool_.parallel_for(num_units, [&](std::int64_t unit) {
      for (std::int64_t r = plan.update_units[index(unit)]; r < plan.update_units[index(unit + 1)];
           ++r) {
        const Plan::Range& range = plan.ranges[index(r)];
        const table::TableSpec& spec = tables_[static_cast<std::size_t>(range.table)]->spec();
        with_optimizer(spec.optimizer.type, [&](auto type) {
          with_dim(spec.dim, [&](auto dim) {
            float* const floats = row_floats_.data() + unit * kRowFloats * max_dim_;
            update_range<type()>(plan, range, grad, step, floats, floats + max_dim_, dim);
          });
        });
      }
    });
    note_applied(step);
  }

 private:
  void note_applied(std::int64_t step) {
    for (table::Table* table : tables_) table->note_applied(step);
  }

  static std::span<const Key> keys_of(const Plan& plan, const Plan::Range& range) {
    return std::span(plan.keys).subspan(index(range.begin), index(range.end - range.begin));
  }

  template <RowOptimizerType kType, class Dim>
  void update_range(const Plan& plan,
                    const Plan::Range& range,
                    const float* grad,
                    std::int64_t step,
                    float* row_gradient,  // [dim]
                    float* scratch,       // [2, dim]
                    Dim dim) {
    table::Table& table = *tables_[static_cast<std::size_t>(range.table)];
    const RowStep& row_step = steps_[static_cast<std::size_t>(range.table)];
    const std::int64_t distance = gather_distance(dim);
    const std::int64_t row_bytes = table.row_bytes();
    const RowLayout& layout = table.layout();
    const std::uint64_t rounding_seed = table.rounding_seed(step);
    const std::int64_t num_unique = plan.num_unique();
    const Occurrences occurrences = occurrences_of(plan, grad);
    const auto rows =
        std::span(plan.rows).subspan(index(range.begin), index(range.end - range.begin));
    table.update_partition(range.partition, step, rows, [&](std::int64_t i, table::RowPointer row) {
      const std::int64_t u = range.begin + i;
      if (u + distance < num_unique) prefetch_write(plan.rows[index(u + distance)], row_bytes);
      reduce_segment(occurrences, plan.segments[index(u)], plan.segments[index(u + 1)],
                     row_gradient, scratch, dim);
      layout.change(row, rounding_seed, scratch, [&](float* weights, float* state) {
        update_row<kType>(row_step, weights, state, row_gradient, dim);
      });
    });
    table.apply_sightings(step, keys_of(plan, range), rows);
  }

  const FeatureLayout layout_;
  const std::vector<table::Table*> tables_;
  ThreadPool& pool_;
  Planner planner_;
  std::int64_t max_dim_ = 0;
  // Used by backward, kept from step to step.
  std::vector<RowStep> steps_;                   // [num_tables]
  static constexpr std::int64_t kRowFloats = 3;  // its gradient, and scratch of two rows
  std::vector<float> row_floats_;                // [num_units, kRowFloats, max_dim]
};

EmbeddingWorker::EmbeddingWorker(const std::vector<job::FeatureSpec>& features,
                                 std::vector<table::Table*> tables,
                                 ThreadPool& pool)
    : impl_(std::make_unique<Impl>(features, std::move(tables), pool)) {}

EmbeddingWorker::~EmbeddingWorker() = default;

std::int64_t EmbeddingWorker::output_width() const { return impl_->layout().output_width; }
std::int64_t EmbeddingWorker::mask_width() const { return impl_->layout().mask_width; }

void EmbeddingWorker::plan(const data::Batch& batch, Plan& plan, std::int64_t step) {
  impl_->planner().plan(batch, plan, step);
}

void EmbeddingWorker::skip(const Plan& plan, std::int64_t step) { impl_->skip(plan, step); }

void EmbeddingWorker::plan_without_insert(const data::Batch& batch,
                                          Plan& plan,
                                          std::vector<std::byte>& missing) const {
  impl_->planner().plan_without_insert(batch, plan, missing);
}

void EmbeddingWorker::forward(const Plan& plan,
                              const data::Batch& batch,
                              std::span<float> pooled,
                              std::span<float> mask) const {
  SATRAP_CHECK(batch.num_rows == plan.num_rows && batch.ids.size() == plan.unique_of.size(),
               "forward of a batch of ", batch.num_rows, " rows with the plan of another");
  SATRAP_CHECK(pooled.size() == index(plan.num_rows * output_width()), "pooled output of ",
               pooled.size(), " floats for ", plan.num_rows, " rows of ", output_width());
  SATRAP_CHECK(mask.size() == index(plan.num_rows * mask_width()), "mask of ", mask.size(),
               " floats for ", plan.num_rows, " rows of ", mask_width());
  impl_->forward(plan, batch, pooled.data(), mask.data());
}

void EmbeddingWorker::backward(const Plan& plan,
                               std::span<const float> grad_pooled,
                               std::int64_t step) {
  SATRAP_CHECK(grad_pooled.size() == index(plan.num_rows * output_width()), "gradient of ",
               grad_pooled.size(), " floats for ", plan.num_rows, " rows of ", output_width());
  SATRAP_CHECK(step >= 1 && step <= kMaxStep, "step ", step);
  impl_->backward(plan, grad_pooled.data(), step);
}

}  // namespace satrap::embedding
