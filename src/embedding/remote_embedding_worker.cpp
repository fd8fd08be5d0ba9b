#include "satrap/embedding/remote_embedding_worker.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/kernels/pool.h"
#include "src/embedding/index.h"
#include "src/embedding/planner.h"
#include "src/embedding/pool_rows.h"

namespace satrap::embedding {
namespace {

/// Shards send floats, however the rows are stored.
std::vector<table::TableSpec> as_received(std::vector<table::TableSpec> tables) {
  for (table::TableSpec& table : tables) table.weights = FloatType::kFp32;
  return tables;
}

}  // namespace

class RemoteEmbeddingWorker::Impl {
 public:
  Impl(const std::vector<job::FeatureSpec>& features,
       const std::vector<table::TableSpec>& specs,
       ThreadPool& threads)
      : layout(features, as_received(specs)),
        tables(specs),
        pool(threads),
        planner(layout, std::ssize(specs), {}, threads) {
    for (const table::TableSpec& spec : specs) max_dim = std::max(max_dim, spec.dim);
  }

  const FeatureLayout layout;
  const std::vector<table::TableSpec> tables;
  ThreadPool& pool;
  Planner planner;
  std::int64_t max_dim = 0;
  std::vector<float> row_floats;  // [num_units, 2, max_dim]: scratch of reduce, kept
};

RemoteEmbeddingWorker::RemoteEmbeddingWorker(const std::vector<job::FeatureSpec>& features,
                                             const std::vector<table::TableSpec>& tables,
                                             ThreadPool& pool)
    : impl_(std::make_unique<Impl>(features, tables, pool)) {}

RemoteEmbeddingWorker::~RemoteEmbeddingWorker() = default;

std::int64_t RemoteEmbeddingWorker::output_width() const { return impl_->layout.output_width; }
std::int64_t RemoteEmbeddingWorker::mask_width() const { return impl_->layout.mask_width; }

void RemoteEmbeddingWorker::plan(const data::Batch& batch, Plan& plan) {
  impl_->planner.plan_keys(batch, plan);
}

void RemoteEmbeddingWorker::forward(const Plan& plan,
                                    const data::Batch& batch,
                                    std::span<const float* const> weights,
                                    std::span<float> pooled,
                                    std::span<float> mask) const {
  SATRAP_CHECK(batch.num_rows == plan.num_rows && batch.ids.size() == plan.unique_of.size(),
               "forward of a batch of ", batch.num_rows, " rows with the plan of another");
  SATRAP_CHECK(weights.size() == plan.keys.size(), "weights of ", weights.size(), " rows for ",
               plan.num_unique(), " keys");
  SATRAP_CHECK(pooled.size() == index(plan.num_rows * output_width()) &&
                   mask.size() == index(plan.num_rows * mask_width()),
               "outputs of ", pooled.size(), " and ", mask.size(), " floats for ", plan.num_rows,
               " rows");
  pool_rows(impl_->layout, plan, batch, reinterpret_cast<const std::byte* const*>(weights.data()),
            0, pooled.data(), mask.data(), impl_->pool);
}

void RemoteEmbeddingWorker::reduce(const Plan& plan,
                                   std::span<const float> grad_pooled,
                                   std::span<float* const> gradients) {
  SATRAP_CHECK(grad_pooled.size() == index(plan.num_rows * output_width()), "gradient of ",
               grad_pooled.size(), " floats for ", plan.num_rows, " rows of ", output_width());
  SATRAP_CHECK(gradients.size() == plan.keys.size(), "room for the gradients of ", gradients.size(),
               " rows for ", plan.num_unique(), " keys");
  const std::int64_t num_units = std::ssize(plan.update_units) - 1;
  impl_->row_floats.resize(index(num_units * 2 * impl_->max_dim));
  const Occurrences occurrences = occurrences_of(plan, grad_pooled.data());
  impl_->pool.parallel_for(num_units, [&](std::int64_t unit) {
    float* const scratch = impl_->row_floats.data() + unit * 2 * impl_->max_dim;
    for (std::int64_t r = plan.update_units[index(unit)]; r < plan.update_units[index(unit + 1)];
         ++r) {
      const Plan::Range& range = plan.ranges[index(r)];
      with_dim(impl_->tables[static_cast<std::size_t>(range.table)].dim, [&](auto dim) {
        for (std::int64_t u = range.begin; u < range.end; ++u) {
          reduce_segment(occurrences, plan.segments[index(u)], plan.segments[index(u + 1)],
                         gradients[index(u)], scratch, dim);
        }
      });
    }
  });
}

}  // namespace satrap::embedding
