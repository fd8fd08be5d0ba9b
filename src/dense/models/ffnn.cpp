#include "src/dense/heads.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// A feed-forward network after PERSIA's:
///   s = tower `sparse` of the pooled input, d = tower `bottom` of the numeric input
///   logits = MLP `top` of [s, d]
/// A layer of a tower is linear [+ batch norm] [+ ReLU], one of the top linear [+ ReLU], the last
/// linear to 1 (for each label, see Top). A tower without layers passes its input on.
class Ffnn : public Model {
 public:
  Ffnn(const ModelConfig& config, const InputShape& shape, Layout& layout)
      : batch_norm_(config.batch_norm),
        sparse_(layout,
                "sparse",
                shape.pooled_width(),
                shape.field_widths.empty() ? std::vector<std::int64_t>{} : config.sparse,
                tower_options(config)),
        bottom_(layout,
                "bottom",
                shape.num_numeric,
                shape.num_numeric == 0 ? std::vector<std::int64_t>{} : config.bottom,
                tower_options(config)),
        top_(layout,
             "top",
             sparse_.out() + bottom_.out(),
             config.top,
             {shape.num_labels(), config.head},
             {.relu = has_relu(config), .dropout = config.dropout}),
        joined_(layout.add_scratch(top_.in())),
        djoined_(layout.add_scratch(top_.in())) {}

  bool needs_whole_batch() const override {
    return batch_norm_ && !(sparse_.empty() && bottom_.empty());
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    const Matrix joined = pass.scratch(joined_);
    tower(pass, sparse_, input.pooled, sparse_part(joined));
    tower(pass, bottom_, input.numeric, bottom_part(joined));
    top_.forward(pass, joined, logits);
  }

  std::string write(Script& script) const override {
    const std::string s = sparse_.write(script, script.pooled());
    const std::string d = bottom_.write(script, script.numeric());
    return top_.write(script, script.let("torch.cat([" + s + ", " + d + "], 1)"));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    const Matrix joined = pass.scratch(joined_), djoined = pass.scratch(djoined_);
    top_.backward(pass, joined, dlogits, djoined);
    if (!bottom_.empty()) {
      bottom_.backward(pass, input.numeric, bottom_part(joined), bottom_part(djoined), Matrix());
    }
    if (sparse_.empty()) {
      copy(sparse_part(djoined), dpooled);
    } else {
      sparse_.backward(pass, input.pooled, sparse_part(joined), sparse_part(djoined), dpooled);
    }
  }

 private:
  static bool has_relu(const ModelConfig& config) { return config.activation == "relu"; }
  static MlpOptions tower_options(const ModelConfig& config) {
    return {.relu = has_relu(config),
            .relu_last = has_relu(config),
            .batch_norm = config.batch_norm,
            .dropout = config.dropout};
  }
  static void tower(Pass& pass, const Mlp& mlp, ConstMatrix x, Matrix out) {
    if (mlp.empty()) {
      copy(x, out);
    } else {
      mlp.forward(pass, x, out);
    }
  }
  Matrix sparse_part(Matrix joined) const { return joined.columns(0, sparse_.out()); }
  Matrix bottom_part(Matrix joined) const { return joined.columns(sparse_.out(), bottom_.out()); }

  bool batch_norm_;
  Mlp sparse_, bottom_;
  Top top_;
  ScratchId joined_, djoined_;
};

}  // namespace

std::unique_ptr<Model> make_ffnn(const ModelConfig& config,
                                 const InputShape& shape,
                                 Layout& layout) {
  return std::make_unique<Ffnn>(config, shape, layout);
}

}  // namespace satrap::dense
