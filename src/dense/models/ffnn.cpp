#include "src/dense/heads.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"

namespace satrap::dense {
namespace {

/// A feed-forward network after PERSIA's:
///   s = tower `sparse` of the pooled input, d = tower `bottom` of the numeric input
///   logits = MLP `top` of [s, d]
/// A layer of a tower is linear [+ batch norm] [+ ReLU], one of the top linear [+ ReLU], the last
/// linear to 1 (for each label, see Top). A tower without layers passes its input on.
class Ffnn : public Model {
 public:
  Ffnn(const job::ModelConfig& config, const InputShape& shape, Layout& layout)
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
             {shape.num_labels(), config.head, config.heads, shape.num_classes},
             {.relu = has_relu(config), .dropout = config.dropout}),
        sparse_out_(scratch_for(sparse_, layout)),
        bottom_out_(scratch_for(bottom_, layout)),
        dsparse_(scratch_for(sparse_, layout)),
        dbottom_(scratch_for(bottom_, layout)) {}

  bool needs_whole_batch() const override {
    return batch_norm_ && !(sparse_.empty() && bottom_.empty());
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    if (!sparse_.empty()) sparse_.forward(pass, input.pooled, pass.scratch(sparse_out_));
    if (!bottom_.empty()) bottom_.forward(pass, input.numeric, pass.scratch(bottom_out_));
    top_.forward(pass, joined(pass, input), logits);
  }

  std::string write(Script& script) const override {
    const std::string s = sparse_.write(script, script.pooled());
    const std::string d = bottom_.write(script, script.numeric());
    return top_.write(script, script.join({s, d}, 1));
  }

  void backward(Pass& pass,
                const ModelInput& input,
                Matrix dlogits,
                Matrix dpooled) const override {
    const Matrix dsparse = sparse_.empty() ? dpooled : pass.scratch(dsparse_);
    const Matrix dbottom = bottom_.empty() ? Matrix() : pass.scratch(dbottom_);
    top_.backward(pass, joined(pass, input), dlogits, {dsparse, dbottom});
    if (!bottom_.empty()) {
      bottom_.backward(pass, input.numeric, pass.scratch(bottom_out_), dbottom, Matrix());
    }
    if (!sparse_.empty()) {
      sparse_.backward(pass, input.pooled, pass.scratch(sparse_out_), dsparse, dpooled);
    }
  }

 private:
  static bool has_relu(const job::ModelConfig& config) {
    return config.activation == job::Activation::kRelu;
  }
  static MlpOptions tower_options(const job::ModelConfig& config) {
    return {.relu = has_relu(config),
            .relu_last = has_relu(config),
            .batch_norm = config.batch_norm,
            .dropout = config.dropout};
  }
  static ScratchId scratch_for(const Mlp& tower, Layout& layout) {
    return layout.add_scratch(tower.empty() ? 0 : tower.out());
  }
  // [s, d]
  ConstJoined joined(Pass& pass, const ModelInput& input) const {
    return {sparse_.empty() ? input.pooled : ConstMatrix(pass.scratch(sparse_out_)),
            bottom_.empty() ? input.numeric : ConstMatrix(pass.scratch(bottom_out_))};
  }

  bool batch_norm_;
  Mlp sparse_, bottom_;
  Top top_;
  ScratchId sparse_out_, bottom_out_, dsparse_, dbottom_;
};

}  // namespace

std::unique_ptr<Model> make_ffnn(const job::ModelConfig& config,
                                 const InputShape& shape,
                                 Layout& layout) {
  return std::make_unique<Ffnn>(config, shape, layout);
}

}  // namespace satrap::dense
