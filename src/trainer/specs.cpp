#include "specs.h"

#include <utility>

#include "satrap/dense/config.h"
#include "satrap/embedding/config.h"

namespace satrap::trainer {

EmbeddingSpecs embedding_specs(const JobConfig& config, const data::Schema& schema) {
  embedding::ResolvedSpecs specs =
      embedding::resolve_specs(config.tables, config.features, schema.features,
                               dense::needs_first_order(config.model.type) ? 1 : 0);
  return {.tables = std::move(specs.tables),
          .features = std::move(specs.features),
          .seed = static_cast<std::uint64_t>(config.seed)};
}

}  // namespace satrap::trainer
