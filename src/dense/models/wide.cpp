#include "satrap/core/error.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// The parts of a model besides the wide one.
struct Parts {
  bool products;  // of every two embeddings
  bool deep;      // an MLP over everything
};

/// Models with a wide part: a row of a table is [weight, v_1 ... v_k], and
///   logit = linear(numeric) + sum of weights
///           + 0.5 sum_j ((sum_f v_fj)^2 - sum_f v_fj^2)    products: FM, DeepFM
///           + relu MLP of [numeric, all v]                 deep: DeepFM, Wide & Deep
/// where linear(numeric) starts at 0. FM: Rendle 2010. DeepFM: Guo et al. 2017, arXiv:1703.04247.
/// Wide & Deep: Cheng et al. 2016, arXiv:1606.07792, with single features in the wide part.
class Wide : public Model {
 public:
  Wide(const job::ModelConfig& config,
       const InputShape& shape,
       std::int64_t width,
       const Parts& parts,
       Layout& layout)
      : parts_(parts),
        width_(width),
        num_numeric_(shape.num_numeric),
        num_factors_(std::ssize(shape.field_widths) * (width - 1)),
        x_(layout.add_scratch(num_numeric_ + num_factors_)) {
    if (parts.deep) {
      deep_.emplace(layout, "deep", num_numeric_ + num_factors_, append(config.hidden, 1),
                    MlpOptions{.relu_last = false, .dropout = config.dropout});
      dx_ = layout.add_scratch(num_numeric_ + num_factors_);
      deep_out_ = layout.add_scratch(1);
    }
    // The deep part has a bias; without a deep part the linear layer has the only one.
    if (num_numeric_ > 0 || !parts.deep) {
      linear_.emplace(layout, "linear", num_numeric_, 1, /*relu=*/false, Initial::kZero);
    }
    layout.set_output_bias(0, deep_ ? deep_->last_bias() : linear_->bias());
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    const Matrix x = pass.scratch(x_);
    if (linear_) {
      linear_->forward(pass, input.numeric, logits);
    } else {
      fill(logits, 0.0F);
    }
    fm(input.pooled, width_, parts_.products, x.columns(num_numeric_, num_factors_), logits);
    if (!deep_) return;
    copy(input.numeric, x.columns(0, num_numeric_));
    deep_->forward(pass, x, pass.scratch(deep_out_));
    add(pass.scratch(deep_out_), logits);
  }

  std::string write(Script& script) const override {
    const std::string fields =
        script.reshape(script.pooled(), {num_factors_ / (width_ - 1), width_});
    std::string logit = script.sum(script.slice(fields, 2, 0, 1), 1);
    const std::string v = script.slice(fields, 2, 1, width_ - 1);
    if (parts_.products) {
      const std::string sum = script.sum(v, 1);
      const std::string squares = script.sum(script.multiply(v, v), 1);
      const std::string pairs = script.subtract(script.multiply(sum, sum), squares);
      logit = script.add(logit, script.scale(0.5F, script.sum_columns(pairs)));
    }
    if (linear_) logit = script.add(logit, linear_->write(script, script.numeric()));
    if (!deep_) return logit;
    const std::string factors = script.reshape(v, {num_factors_});
    const std::string x = script.join({script.numeric(), factors}, 1);
    return script.add(logit, deep_->write(script, x));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    if (linear_) linear_->backward(pass, input.numeric, ConstMatrix(), dlogits, Matrix());
    ConstMatrix dfactors;
    if (deep_) {
      const Matrix dx = pass.scratch(dx_);
      deep_->backward(pass, pass.scratch(x_), ConstMatrix(), dlogits, dx);
      dfactors = dx.columns(num_numeric_, num_factors_);
    }
    fm_backward(input.pooled, width_, parts_.products, dfactors, dlogits, dpooled);
  }

 private:
  Parts parts_;
  std::int64_t width_, num_numeric_, num_factors_;
  ScratchId x_, dx_ = 0, deep_out_ = 0;
  std::optional<Mlp> deep_;
  std::optional<Linear> linear_;
};

std::unique_ptr<Model> make_wide(const job::ModelConfig& config,
                                 const InputShape& shape,
                                 const Parts& parts,
                                 Layout& layout) {
  const std::int64_t width = equal_field_width(config.type, shape);
  if (width < 2) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model '", word_of(config.type, job::kModelTypes),
                       "' needs a first-order weight and at least one factor per id, got vectors "
                       "of width ",
                       width));
  }
  return std::make_unique<Wide>(config, shape, width, parts, layout);
}

}  // namespace

std::unique_ptr<Model> make_fm(const job::ModelConfig& config,
                               const InputShape& shape,
                               Layout& layout) {
  return make_wide(config, shape, {.products = true, .deep = false}, layout);
}

std::unique_ptr<Model> make_deepfm(const job::ModelConfig& config,
                                   const InputShape& shape,
                                   Layout& layout) {
  return make_wide(config, shape, {.products = true, .deep = true}, layout);
}

std::unique_ptr<Model> make_wide_deep(const job::ModelConfig& config,
                                      const InputShape& shape,
                                      Layout& layout) {
  return make_wide(config, shape, {.products = false, .deep = true}, layout);
}

}  // namespace satrap::dense
