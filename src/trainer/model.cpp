#include "model.h"

#include <utility>

#include "satrap/embedding/config.h"
#include "shards_store.h"
#include "tables_store.h"

namespace satrap::trainer {
namespace {

embedding::ResolvedSpecs resolve(const JobConfig& config, const data::Schema& schema) {
  return embedding::resolve_specs(config.tables, config.features, schema.features,
                                  dense::needs_first_order(config.model.type) ? 1 : 0);
}

dense::InputShape input_shape(const data::Schema& schema, const embedding::ResolvedSpecs& specs) {
  dense::InputShape shape;
  shape.num_numeric = schema.num_numeric_outputs();
  for (const embedding::FeatureSpec& feature : specs.features) {
    const std::int64_t dim = specs.tables[static_cast<std::size_t>(feature.table)].dim;
    for (std::int64_t i = 0; i < feature.max_length; ++i) {
      shape.field_widths.push_back(dim);
      shape.field_names.push_back(feature.name);
    }
    const bool masked = feature.pooling == embedding::Pooling::kSequence;
    shape.num_numeric += masked ? feature.max_length : 0;
  }
  return shape;
}

}  // namespace

dense::Precision resolve_precision(const TrainConfig& config) {
  return config.precision == "bf16" ? dense::Precision::kBf16 : dense::Precision::kFp32;
}

void check_model(const JobConfig& config) {
  const data::Schema schema = data::resolve_schema(config.data);
  dense::check_model(config.model, input_shape(schema, resolve(config, schema)));
}

EmbeddingSpecs embedding_specs(const JobConfig& config, const data::Schema& schema) {
  embedding::ResolvedSpecs specs = resolve(config, schema);
  return {.tables = std::move(specs.tables),
          .features = std::move(specs.features),
          .seed = static_cast<std::uint64_t>(config.seed)};
}

Model::Model(const JobConfig& config,
             const data::Schema& schema,
             Cluster& cluster,
             ThreadPool& pool)
    : specs(embedding_specs(config, schema)) {
  if (config.embedding.store == "ps") {
    store = std::make_unique<ShardsStore>(specs, config, cluster, pool);
  } else {
    store = std::make_unique<TablesStore>(specs, pool);
  }
  network = dense::DenseNetwork::create(
      config.model, config.dense_optimizer, resolve_precision(config.train),
      input_shape(schema, resolve(config, schema)), specs.seed, pool);
}

}  // namespace satrap::trainer
