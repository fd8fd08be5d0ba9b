#include "src/trainer/export_description.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "satrap/core/hash.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/job/label_loss.h"
#include "satrap/table/row_init.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

Json text_of(const data::Schema& schema) {
  const data::SchemaConfig& text = schema.text;
  return {{"delimiter", text.delimiter},
          {"quote", text.quote},
          {"decimal", word_of(text.decimal, data::kDecimals)},
          {"header", text.header},
          {"columns", text.columns},
          {"trim", text.trim},
          {"missing", text.missing},
          {"value_rule", text.value_rule}};
}

/// What makes a prediction of a logit.
const char* prediction_of(job::Loss loss) {
  return loss == job::Loss::kMse ? "identity" : loss == job::Loss::kSoftmax ? "softmax" : "sigmoid";
}

/// In the order of the network's outputs; the only label of classes has one for each.
Json labels_of(const LoadedModel& loaded) {
  Json labels = Json::array();
  for (const data::NamedLabelConfig& label : loaded.data.schema().labels) {
    Json& described =
        labels.emplace_back(Json{{"name", label.name}, {"column", label.source.column}});
    const job::Loss loss = job::loss_of(loaded.config.model, label.source);
    if (!predicts_otherwise(loaded)) continue;
    described["prediction"] = prediction_of(loss);
    if (label.source.has_classes()) described["classes"] = label.source.class_names();
  }
  return labels;
}

Json numeric_inputs(const data::Schema& schema, const data::FittedTransforms& transforms) {
  Json inputs = Json::array();
  for (std::size_t i = 0; i < schema.numeric_inputs.size(); ++i) {
    const data::NumericConfig& config = schema.numeric_inputs[i].config;
    Json& input = inputs.emplace_back(Json{{"name", config.name}, {"column", config.column}});
    if (config.is_age()) {
      input["since"] = config.since;
      input["unit"] = word_of(config.unit, data::kAgeUnits);
    }
    input.update(Json{{"position", schema.numeric_inputs[i].output},
                      {"missing_indicator", config.missing_indicator},
                      {"clip", config.clip},
                      {"transform", word_of(config.transform, data::kTransforms)},
                      {"mean", transforms.scales[i].mean},
                      {"stddev", transforms.scales[i].stddev},
                      {"fill", config.fill}});
  }
  return inputs;
}

/// How the features' text becomes ids; those made from a number have the boundaries of their ranges
/// instead, those made from a time its part, and crosses the names of their features.
std::vector<Json> feature_texts(const data::Schema& schema,
                                const data::FittedTransforms& transforms) {
  std::vector<Json> texts(schema.features.size());
  for (const data::Schema::IdColumn& column : schema.id_columns) {
    if (column.feature == data::Schema::kGroups) continue;  // no input
    const data::FeatureConfig& config = column.config;
    texts[static_cast<std::size_t>(column.feature)] = {
        {"column", config.column},
        {"type", word_of(config.type, data::kIdTypes)},
        {"separator", config.separator},
        {"weight_separator", config.weight_separator},
        {"keep", word_of(config.keep, data::kKeptIds)},
        {"missing", word_of(config.missing, data::kMissingIds)}};
    // Several columns: the bag has the ids of all of them, in this order.
    if (!config.columns.empty()) {
      texts[static_cast<std::size_t>(column.feature)]["columns"] = config.columns;
    }
  }
  for (std::size_t i = 0; i < schema.bucketed.size(); ++i) {
    const data::FeatureConfig& config = schema.bucketed[i].config;
    texts[static_cast<std::size_t>(schema.bucketed[i].feature)] = {
        {"column", config.column},
        {"boundaries", transforms.boundaries[i]},
        {"missing", word_of(config.missing, data::kMissingIds)}};
  }
  for (const data::Schema::Dated& feature : schema.dated) {
    texts[static_cast<std::size_t>(feature.feature)] = {
        {"column", feature.config.column},
        {"part", word_of(feature.config.part, data::kDateParts)},
        {"zone", feature.config.zone},
        {"missing", word_of(feature.config.missing, data::kMissingIds)}};
  }
  for (const data::Schema::Cross& feature : schema.crosses) {
    texts[static_cast<std::size_t>(feature.feature)] = {
        {"cross", feature.config.cross},
        {"missing", word_of(feature.config.missing, data::kMissingIds)}};
  }
  return texts;
}

Json features_of(const LoadedModel& loaded, const embedding::FeatureLayout& layout) {
  const std::vector<Json> texts = feature_texts(loaded.data.schema(), loaded.transforms);
  Json features = Json::array();
  for (std::size_t f = 0; f < layout.features.size(); ++f) {
    const embedding::PlacedFeature& placed = layout.features[f];
    const auto table = static_cast<std::size_t>(placed.spec.table);
    Json& feature = features.emplace_back(
        Json{{"name", placed.spec.name}, {"table", loaded.model.specs.tables[table].name}});
    feature.update(texts[f]);
    feature["max_length"] = loaded.data.schema().features[f].max_length;
    feature["pooling"] = kPoolingNames[static_cast<std::size_t>(placed.spec.pooling)];
    feature["position"] = placed.column;
    feature["width"] = placed.width;
    if (placed.spec.pooling != Pooling::kSequence) continue;
    feature["mask_position"] = loaded.data.schema().num_numeric_outputs() + placed.mask_column;
  }
  return features;
}

/// The weights of an id without a row: zeros if ids are admitted late, else its initial row.
Json init_of(const table::TableSpec& table, std::uint64_t seed) {
  if (table.limits.admit_after > 1) return {{"type", "constant"}, {"scale", 0.0}};
  return {{"type", table::name_of(table.init.type)},
          {"scale", table.init.scale},
          {"seed", to_hex(table::RowInit::table_seed(seed, table.name))}};
}

Json tables_of(const LoadedModel& loaded) {
  Json tables = Json::array();
  for (const table::TableSpec& table : loaded.model.specs.tables) {
    tables.push_back({{"name", table.name},
                      {"dim", table.dim},
                      {"stored_as", name_of(table.weights)},
                      {"missing_row", init_of(table, loaded.model.specs.seed)}});
  }
  return tables;
}

}  // namespace

bool predicts_otherwise(const LoadedModel& loaded) {
  return std::ranges::any_of(loaded.data.schema().labels, [&](const auto& label) {
    return job::loss_of(loaded.config.model, label.source) != job::Loss::kBce;
  });
}

const char* network_file(NetworkFormat format) {
  return format == NetworkFormat::kOnnx  ? "dense.onnx"
         : format == NetworkFormat::kPt2 ? "dense.pt2"
                                         : "dense.pt";
}

Json describe_model(const LoadedModel& loaded, NetworkFormat format) {
  const job::EmbeddingSpecs& specs = loaded.model.specs;
  const embedding::FeatureLayout layout(specs.features, specs.tables);
  return {{"model",
           {{"type", word_of(loaded.config.model.type, job::kModelTypes)},
            {"file", network_file(format)},
            {"format", word_of(format, kNetworkFormats)},
            {"numeric_width", loaded.data.schema().num_numeric_outputs() + layout.mask_width},
            {"pooled_width", layout.output_width},
            {"output", "logit"}}},
          {"labels", labels_of(loaded)},
          {"text", text_of(loaded.data.schema())},
          {"numeric", numeric_inputs(loaded.data.schema(), loaded.transforms)},
          {"features", features_of(loaded, layout)},
          {"tables", tables_of(loaded)}};
}

}  // namespace satrap::trainer
