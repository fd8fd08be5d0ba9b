#include "satrap/core/error.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// Logistic regression: every table holds one weight per id, so the logit is the sum of all pooled
/// columns, plus a linear function of the numeric ones, which starts at 0.
class Logistic : public Model {
 public:
  Logistic(const InputShape& shape, Layout& layout)
      : weight_(layout.add_parameter("linear.weight", {1, shape.num_numeric}, /*range=*/0.0F)),
        bias_(layout.add_parameter("linear.bias", {1}, /*range=*/0.0F)) {
    layout.set_output_bias(0, bias_);
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    dot_rows(input.numeric, pass.value(weight_).data, pass.value(bias_).data, logits, false);
    sum_row(input.pooled, logits, /*add=*/true);
  }

  std::string write(Script& script) const override {
    return script.add(script.linear(script.numeric(), weight_, bias_),
                      script.sum_columns(script.pooled()));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    dot_rows_backward(input.numeric, pass.value(weight_).data, dlogits, Matrix(),
                      pass.gradient(weight_).data, pass.gradient(bias_).data, pass.accumulate());
    pass.finished(bias_);
    pass.finished(weight_);
    sum_row_backward(dlogits, dpooled);
  }

 private:
  ParameterId weight_, bias_;
};

}  // namespace

std::unique_ptr<Model> make_logistic(const job::ModelConfig& config,
                                     const InputShape& shape,
                                     Layout& layout) {
  if (!shape.field_widths.empty() && equal_field_width(config.type, shape) != 1) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model 'logistic' needs tables of dim 1, got ", shape.field_widths[0]));
  }
  return std::make_unique<Logistic>(shape, layout);
}

}  // namespace satrap::dense
