#include "satrap/core/error.h"
#include "src/dense/heads.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// DLRM (Naumov et al. 2019, arXiv:1906.00091), dot interaction:
///   b = relu MLP of the numeric input, as wide as an embedding
///   logits = MLP of [b, dot products of every two of b and the embeddings]
/// Without numeric input there is no b.
class Dlrm : public Model {
 public:
  Dlrm(const job::ModelConfig& config, const InputShape& shape, std::int64_t width, Layout& layout)
      : width_(width),
        bottom_width_(shape.num_numeric > 0 ? width : 0),
        num_vectors_((bottom_width_ > 0 ? 1 : 0) + std::ssize(shape.field_widths)),
        num_products_(num_vectors_ * (num_vectors_ - 1) / 2),
        bottom_(layout,
                "bottom",
                shape.num_numeric,
                bottom_widths(config, shape, width),
                {.dropout = config.dropout}),
        top_(layout,
             "top",
             bottom_width_ + num_products_,
             config.top,
             {shape.num_labels(), config.head, config.heads, shape.num_classes},
             {.dropout = config.dropout}),
        interaction_(layout.add_scratch(bottom_width_ + num_products_)),
        dinteraction_(layout.add_scratch(bottom_width_ + num_products_)),
        work_(layout.add_scratch(dot_interaction_work(num_vectors_, width), 1)) {}

  // The bottom's output and the products are written side by side as the top's input.
  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    const Matrix x = pass.scratch(interaction_);
    const Matrix b = x.columns(0, bottom_width_);
    if (!bottom_.empty()) bottom_.forward(pass, input.numeric, b);
    dot_interaction(b, input.pooled, width_, pass.scratch(work_).data,
                    x.columns(bottom_width_, num_products_));
    top_.forward(pass, x, logits);
  }

  std::string write(Script& script) const override {
    std::vector<std::string> vectors, inputs;
    if (!bottom_.empty()) {
      vectors.push_back(bottom_.write(script, script.numeric()));
      inputs = vectors;
    }
    vectors.push_back(script.pooled());
    const std::string z = script.reshape(script.join(vectors, 1), {num_vectors_, width_});
    inputs.push_back(script.below_diagonal(script.matmul(z, script.transpose(z)), num_vectors_));
    return top_.write(script, script.join(inputs, 1));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    const Matrix x = pass.scratch(interaction_), dx = pass.scratch(dinteraction_);
    const Matrix b = x.columns(0, bottom_width_), db = dx.columns(0, bottom_width_);
    top_.backward(pass, x, dlogits, dx);
    dot_interaction_backward(b, input.pooled, width_, dx.columns(bottom_width_, num_products_),
                             pass.scratch(work_).data, db, dpooled);
    if (!bottom_.empty()) bottom_.backward(pass, input.numeric, b, db, Matrix());
  }

 private:
  static std::vector<std::int64_t> bottom_widths(const job::ModelConfig& config,
                                                 const InputShape& shape,
                                                 std::int64_t width) {
    if (shape.num_numeric == 0) return {};
    if (!config.bottom.empty() && config.bottom.back() == width) return config.bottom;
    return append(config.bottom, width);
  }

  std::int64_t width_, bottom_width_, num_vectors_, num_products_;
  Mlp bottom_;
  Top top_;
  ScratchId interaction_, dinteraction_, work_;
};

}  // namespace

std::unique_ptr<Model> make_dlrm(const job::ModelConfig& config,
                                 const InputShape& shape,
                                 Layout& layout) {
  const std::int64_t width = equal_field_width(config.type, shape);
  if (shape.num_numeric == 0 && shape.field_widths.size() == 1) {
    throw Error(
        ErrorCode::kInvalidConfig,
        "model 'dlrm' needs two vectors to interact, got one feature and no numeric column");
  }
  return std::make_unique<Dlrm>(config, shape, width, layout);
}

}  // namespace satrap::dense
