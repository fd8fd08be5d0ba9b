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

std::int64_t equal_field_width(job::ModelType type, const InputShape& shape) {
  const std::string_view model = word_of(type, job::kModelTypes);
  if (shape.field_widths.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model '", model, "' needs at least one categorical feature, got none"));
  }
  const std::int64_t width = shape.field_widths.front();
  for (std::size_t i = 0; i < shape.field_widths.size(); ++i) {
    if (shape.field_widths[i] == width) continue;
    const std::int64_t first_order = job::needs_first_order(type) ? 1 : 0;  // not the user's
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

void check_heads(const job::HeadsConfig& heads, std::int64_t num_labels) {
  constexpr std::int64_t kMaxExperts = 1024;
  if (!heads.has_experts()) return;
  if (num_labels == 1) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model.heads: ", word_of(heads.type, job::kHeadsTypes),
                       " is for several labels (data.schema.labels), got one; leave it out"));
  }
  if (const std::int64_t n = heads.num_experts(num_labels); n > kMaxExperts) {
    throw Error(ErrorCode::kInvalidConfig, concat("model.heads: at most ", kMaxExperts,
                                                  " experts are possible, over all levels and ",
                                                  num_labels, " labels, got ", n));
  }
}

/// In these models an id's row holds the terms that it adds to the logit, for one output.
void check_labels(const job::ModelConfig& config, const InputShape& shape) {
  check_heads(config.heads, shape.num_labels());
  if (shape.num_outputs() == 1) return;
  if (!job::needs_first_order(config.type) && !job::needs_dim_one(config.type)) return;
  if (shape.num_classes > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("data.schema.label.classes: model '", word_of(config.type, job::kModelTypes),
                       "' has one output, got ", shape.num_classes,
                       " classes: a row of its tables has the weight of an id for one (of classes: "
                       "dcn_v2, dlrm, ffnn, din, torchscript)"));
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("data.schema.labels: model '", word_of(config.type, job::kModelTypes),
                     "' predicts one label, got ", shape.num_labels(),
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
    throw Error(ErrorCode::kInvalidConfig, concat("model '", word_of(config.type, job::kModelTypes),
                                                  "' has no input: no numeric column, no feature"));
  }
  check_labels(config, shape);
  switch (config.type) {
    case job::ModelType::kLogistic:
      return make_logistic(config, shape, layout);
    case job::ModelType::kFm:
      return make_fm(config, shape, layout);
    case job::ModelType::kWideDeep:
      return make_wide_deep(config, shape, layout);
    case job::ModelType::kDeepFm:
      return make_deepfm(config, shape, layout);
    case job::ModelType::kDcnV2:
      return make_dcn_v2(config, shape, layout);
    case job::ModelType::kDlrm:
      return make_dlrm(config, shape, layout);
    case job::ModelType::kFfnn:
      return make_ffnn(config, shape, layout);
    case job::ModelType::kDin:
      return make_din(config, shape, layout);
    case job::ModelType::kTorchScript:
      return make_torchscript(config, shape, layout);
    case job::ModelType::kPython:
      throw Error(ErrorCode::kInvalidConfig,
                  "model: 'python' is a network of a program in Python, which alone computes it; "
                  "run the program, in which satrap.Trainer trains it (docs/python.md)");
  }
  return nullptr;  // not reached
}

}  // namespace satrap::dense
