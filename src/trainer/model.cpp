#include "model.h"

#include "config_place.h"
#include "shards_store.h"
#include "tables_store.h"

namespace satrap::trainer {
namespace {

dense::InputShape input_shape(const data::Schema& schema, const EmbeddingSpecs& specs) {
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

/// `auto` is fp32 on CPUs, where bf16 GEMM is slower without AMX.
dense::Precision resolve_precision(const TrainConfig& config) {
  return config.precision == "bf16" ? dense::Precision::kBf16 : dense::Precision::kFp32;
}

void check_model(const JobConfig& config) {
  const data::Schema schema = data::resolve_schema(config.data);
  dense::check_model(config.model, input_shape(schema, embedding_specs(config, schema)));
}

}  // namespace

JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigOrigins origins;
  JobConfig config = read_job(path, overrides, origins);
  with_place(origins, [&] { check_model(config); });
  return config;
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
  network = dense::DenseNetwork::create(config.model, config.dense_optimizer,
                                        resolve_precision(config.train), input_shape(schema, specs),
                                        specs.seed, pool);
}

}  // namespace satrap::trainer
