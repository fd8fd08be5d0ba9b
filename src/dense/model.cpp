#include "src/dense/model.h"

#include <numeric>

#include "satrap/core/error.h"

namespace satrap::dense {

std::int64_t InputShape::pooled_width() const {
  return std::accumulate(field_widths.begin(), field_widths.end(), std::int64_t{0});
}

namespace {

std::string field_name(const InputShape& shape, std::size_t field) {
  return field < shape.field_names.size() ? concat("'", shape.field_names[field], "'")
                                          : concat("field ", field);
}

}  // namespace

std::int64_t equal_field_width(const std::string& model, const InputShape& shape) {
  if (shape.field_widths.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model '", model, "' needs at least one categorical feature, got none"));
  }
  const std::int64_t width = shape.field_widths.front();
  for (std::size_t i = 0; i < shape.field_widths.size(); ++i) {
    if (shape.field_widths[i] == width) continue;
    const std::int64_t first_order = job::needs_first_order(model) ? 1 : 0;  // not the user's
    throw Error(ErrorCode::kInvalidConfig,
                concat("tables: model '", model, "' needs tables of one dim: that of ",
                       field_name(shape, 0), " is ", width - first_order, ", that of ",
                       field_name(shape, i), " is ", shape.field_widths[i] - first_order,
                       "; write tables.default.dim alone, or the same dim for each"));
  }
  return width;
}

std::vector<std::int64_t> append(std::vector<std::int64_t> widths, std::int64_t last) {
  widths.push_back(last);
  return widths;
}

namespace {

/// In these models an id's row holds the terms that it adds to the logit, for one label.
void check_labels(const job::ModelConfig& config, const InputShape& shape) {
  if (shape.num_labels() == 1) return;
  if (!job::needs_first_order(config.type) && !job::needs_dim_one(config.type)) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("data.schema.labels: model '", config.type, "' predicts one label, got ",
                     shape.num_labels(),
                     ": a row of its tables has the weight of an id for one (of several labels: "
                     "dcn_v2, dlrm, ffnn, din, torchscript)"));
}

}  // namespace

void check_model(const job::ModelConfig& model, const InputShape& shape) {
  Layout layout;
  make_model(model, shape, layout);
}

std::unique_ptr<Model> make_model(const job::ModelConfig& config,
                                  const InputShape& shape,
                                  Layout& layout) {
  if (shape.num_numeric == 0 && shape.field_widths.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model '", config.type, "' has no input: no numeric column, no feature"));
  }
  check_labels(config, shape);
  if (config.type == "logistic") return make_logistic(config, shape, layout);
  if (config.type == "fm") return make_fm(config, shape, layout);
  if (config.type == "wide_deep") return make_wide_deep(config, shape, layout);
  if (config.type == "deepfm") return make_deepfm(config, shape, layout);
  if (config.type == "dcn_v2") return make_dcn_v2(config, shape, layout);
  if (config.type == "dlrm") return make_dlrm(config, shape, layout);
  if (config.type == "ffnn") return make_ffnn(config, shape, layout);
  if (config.type == "din") return make_din(config, shape, layout);
  if (config.type == "torchscript") return make_torchscript(config, shape, layout);
  throw Error(ErrorCode::kInvalidConfig, concat("unknown model type '", config.type, "'"));
}

}  // namespace satrap::dense
