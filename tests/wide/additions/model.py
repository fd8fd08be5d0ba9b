"""linear: a weight for each number and for each column of a pooled embedding."""

from places import Addition, NewFile, after, before

CONFIG = "include/satrap/job/model_config.h"
ADDITION = Addition("model", [
    after(CONFIG, "  kDin,\n  kTorchScript", ",\n  kLinear"),
    after(CONFIG, '{"torchscript", ModelType::kTorchScript}',
          ',\n                                                    {"linear", ModelType::kLinear}'),
    before("src/job/model_config.cpp", '"fm: factorization machine. wide_deep:',
           '"linear: a weight per number and per column of an embedding. "\n      '),
    after("src/dense/model.h", "std::unique_ptr<Model> make_fm(const job::ModelConfig&, const InputShape&, Layout&);\n",
          "std::unique_ptr<Model> make_linear(const job::ModelConfig&, const InputShape&, Layout&);\n"),
    before("src/dense/model.cpp", "    case job::ModelType::kTorchScript:\n", """\
    case job::ModelType::kLinear:
      return make_linear(config, shape, layout);
"""),
    NewFile("src/dense/models/linear.cpp", """\
#include "satrap/core/error.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// A linear function of the numbers, which starts at 0, and of all pooled columns, which does not.
class LinearModel : public Model {
 public:
  LinearModel(const InputShape& shape, Layout& layout)
      : numeric_(layout.add_parameter("numeric.weight", {1, shape.num_numeric}, /*range=*/0.0F)),
        bias_(layout.add_parameter("numeric.bias", {1}, /*range=*/0.0F)),
        pooled_(layout.add_parameter("pooled.weight", {1, shape.pooled_width()}, /*range=*/0.5F)) {
    layout.set_output_bias(0, bias_);
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    dot_rows(input.numeric, pass.value(numeric_).data, pass.value(bias_).data, logits, false);
    dot_rows(input.pooled, pass.value(pooled_).data, nullptr, logits, /*add=*/true);
  }

  std::string write(Script& script) const override {
    return script.add(script.linear(script.numeric(), numeric_, bias_),
                      script.linear(script.pooled(), pooled_));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    dot_rows_backward(input.pooled, pass.value(pooled_).data, dlogits, dpooled,
                      pass.gradient(pooled_).data, nullptr, pass.accumulate());
    pass.finished(pooled_);
    dot_rows_backward(input.numeric, pass.value(numeric_).data, dlogits, Matrix(),
                      pass.gradient(numeric_).data, pass.gradient(bias_).data, pass.accumulate());
    pass.finished(bias_);
    pass.finished(numeric_);
  }

 private:
  ParameterId numeric_, bias_, pooled_;
};

}  // namespace

std::unique_ptr<Model> make_linear(const job::ModelConfig& /*config*/,
                                   const InputShape& shape,
                                   Layout& layout) {
  if (shape.num_labels() != 1) {
    throw Error(ErrorCode::kInvalidConfig, "data.schema.labels: model 'linear' predicts one label");
  }
  return std::make_unique<LinearModel>(shape, layout);
}

}  // namespace satrap::dense
"""),
])
