#include "specs.h"

#include <utility>

#include "embedding_stage.h"
#include "satrap/dense/config.h"
#include "satrap/embedding/config.h"

namespace satrap::trainer {

EmbeddingSpecs embedding_specs(const JobConfig& config, const data::Schema& schema) {
  embedding::ResolvedSpecs specs =
      embedding::resolve_specs(config.tables, config.features, schema.features,
                               dense::needs_first_order(config.model.type) ? 1 : 0);
  // The same in every process, so that the same rows go wherever they are.
  for (ps::TableSpec& table : specs.tables) {
    table.limits.pinned_steps = EmbeddingStage::max_in_flight(config.train.prefetch_batches,
                                                              config.train.staleness_bound());
  }
  return {.tables = std::move(specs.tables),
          .features = std::move(specs.features),
          .seed = static_cast<std::uint64_t>(config.seed)};
}

}  // namespace satrap::trainer
