#include "satrap/job/embedding_specs.h"

#include <utility>

#include "satrap/job/model_config.h"
#include "satrap/job/table_config.h"

namespace satrap::job {

EmbeddingSpecs embedding_specs(const JobConfig& config, const data::Schema& schema) {
  ResolvedSpecs specs = resolve_specs(config.tables, config.features, schema.features,
                                      needs_first_order(config.model.type) ? 1 : 0);
  // The same in every process, so that every process evicts the same rows.
  for (table::TableSpec& table : specs.tables) {
    table.limits.pinned_steps = config.train.max_in_flight();
  }
  return {.tables = std::move(specs.tables),
          .features = std::move(specs.features),
          .seed = static_cast<std::uint64_t>(config.seed)};
}

}  // namespace satrap::job
