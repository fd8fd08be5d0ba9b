#include "model.h"

#include "satrap/embedding/config.h"

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

Model::Model(const JobConfig& config, const data::Schema& schema, ThreadPool& pool) {
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const embedding::ResolvedSpecs specs = resolve(config, schema);
  for (const ps::TableSpec& spec : specs.tables) {
    tables.push_back(std::make_unique<ps::Table>(spec, seed));
  }
  features = specs.features;
  worker = make_worker(pool);
  network = dense::DenseNetwork::create(config.model, config.dense_optimizer,
                                        resolve_precision(config.train), input_shape(schema, specs),
                                        seed, pool);
}

std::unique_ptr<embedding::EmbeddingWorker> Model::make_worker(ThreadPool& pool) const {
  std::vector<ps::Table*> pointers;
  for (const auto& table : tables) pointers.push_back(table.get());
  return std::make_unique<embedding::EmbeddingWorker>(features, std::move(pointers), pool);
}

std::int64_t Model::num_rows() const {
  std::int64_t rows = 0;
  for (const auto& table : tables) rows += table->num_rows();
  return rows;
}

std::int64_t Model::table_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& table : tables) bytes += table->resident_bytes();
  return bytes;
}

}  // namespace satrap::trainer
