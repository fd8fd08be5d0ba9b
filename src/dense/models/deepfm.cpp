#include "satrap/core/error.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// DeepFM (Guo et al. 2017, arXiv:1703.04247). A row of a table is [weight, v_1 ... v_k]:
///   logit = relu MLP of [numeric, all v] + linear(numeric) + sum of weights
///           + 0.5 sum_j ((sum_f v_fj)^2 - sum_f v_fj^2)
class DeepFm : public Model {
 public:
  DeepFm(const ModelConfig& config, const InputShape& shape, std::int64_t width, Layout& layout)
      : width_(width),
        num_numeric_(shape.num_numeric),
        num_factors_(std::ssize(shape.field_widths) * (width - 1)),
        deep_(layout,
              "deep",
              num_numeric_ + num_factors_,
              append(config.hidden, 1),
              {.relu_last = false, .dropout = config.dropout}),
        x_(layout.add_scratch(num_numeric_ + num_factors_)),
        dx_(layout.add_scratch(num_numeric_ + num_factors_)),
        linear_out_(layout.add_scratch(1)) {
    if (num_numeric_ > 0) linear_.emplace(layout, "linear", num_numeric_, 1, false);
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    const Matrix x = pass.scratch(x_);
    if (linear_) {
      copy(input.numeric, x.columns(0, num_numeric_));
      linear_->forward(pass, input.numeric, pass.scratch(linear_out_));
    } else {
      fill(pass.scratch(linear_out_), 0.0F);
    }
    fm(input.pooled, width_, x.columns(num_numeric_, num_factors_), pass.scratch(linear_out_));
    deep_.forward(pass, x, logits);
    add(pass.scratch(linear_out_), logits);
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    const Matrix dx = pass.scratch(dx_);
    if (linear_) linear_->backward(pass, input.numeric, ConstMatrix(), dlogits, Matrix());
    deep_.backward(pass, pass.scratch(x_), ConstMatrix(), dlogits, dx);
    fm_backward(input.pooled, width_, dx.columns(num_numeric_, num_factors_), dlogits, dpooled);
  }

 private:
  std::int64_t width_, num_numeric_, num_factors_;
  Mlp deep_;
  std::optional<Linear> linear_;
  ScratchId x_, dx_, linear_out_;
};

}  // namespace

std::unique_ptr<Model> make_deepfm(const ModelConfig& config,
                                   const InputShape& shape,
                                   Layout& layout) {
  const std::int64_t width = equal_field_width("deepfm", shape);
  if (width < 2) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model 'deepfm' needs a first-order weight and at least one factor per id, "
                       "got vectors of width ",
                       width));
  }
  return std::make_unique<DeepFm>(config, shape, width, layout);
}

}  // namespace satrap::dense
