#include "satrap/core/error.h"
#include "src/dense/heads.h"
#include "src/dense/layers.h"
#include "src/dense/model.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

/// DCN-v2 (Wang et al. 2020, arXiv:2008.13535), full matrices, parallel structure, x0 = [numeric,
/// pooled]:
///   x_{l+1} = x0 * (W_l x_l + b_l) + x_l            cross layers
///   h = relu MLP of x0                              deep tower
///   logits = linear([x_L, h]), or a head per label
class DcnV2 : public Model {
 public:
  DcnV2(const job::ModelConfig& config, const InputShape& shape, Layout& layout)
      : num_numeric_(shape.num_numeric),
        width_(shape.num_numeric + shape.pooled_width()),
        deep_(layout, "deep", width_, config.hidden, {.dropout = config.dropout}),
        deep_out_(config.hidden.empty() ? 0 : deep_.out()),
        x0_(layout.add_scratch(width_)),
        joined_(layout.add_scratch(width_ + deep_out_)),
        djoined_(layout.add_scratch(width_ + deep_out_)),
        dx0_(layout.add_scratch(width_)),
        dx_(layout.add_scratch(width_)),
        du_(layout.add_scratch(width_)) {
    for (std::int64_t l = 0; l < config.cross_layers; ++l) {
      const std::string name = "cross." + std::to_string(l);
      const float range = uniform_range(width_);
      cross_.push_back({.weight = layout.add_parameter(name + ".weight", {width_, width_}, range),
                        .bias = layout.add_parameter(name + ".bias", {width_}, range),
                        .product = layout.add_scratch(width_),
                        .output = layout.add_scratch(width_)});
    }
    heads_.emplace(layout, "final", width_ + deep_out_,
                   Output{shape.num_labels(), config.head, config.heads, shape.num_classes},
                   MlpOptions{.dropout = config.dropout});
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    const Matrix x0 = pass.scratch(x0_), joined = pass.scratch(joined_);
    copy(input.numeric, x0.columns(0, num_numeric_));
    copy(input.pooled, x0.columns(num_numeric_, width_ - num_numeric_));
    Matrix x = x0;
    for (const CrossLayer& layer : cross_) {
      const Matrix u = pass.scratch(layer.product), next = pass.scratch(layer.output);
      pass.gemm().multiply_nt(x, pass.value(layer.weight), u);
      cross(x0, x, pass.value(layer.bias).data, u, next);
      x = next;
    }
    copy(x, joined.columns(0, width_));
    if (!deep_.empty()) deep_.forward(pass, x0, joined.columns(width_, deep_out_));
    heads_->forward(pass, joined, logits);
  }

  std::string write(Script& script) const override {
    const std::string x0 = script.join({script.numeric(), script.pooled()}, 1);
    std::string x = x0;
    for (const CrossLayer& layer : cross_) {
      x = script.add(script.multiply(x0, script.linear(x, layer.weight, layer.bias)), x);
    }
    if (!deep_.empty()) x = script.join({x, deep_.write(script, x0)}, 1);
    return heads_->write(script, x);
  }

  void backward(Pass& pass, const ModelInput&, Matrix dlogits, Matrix dpooled) const override {
    const Matrix x0 = pass.scratch(x0_), dx0 = pass.scratch(dx0_), du = pass.scratch(du_);
    const Matrix joined = pass.scratch(joined_), djoined = pass.scratch(djoined_);
    heads_->backward(pass, joined, dlogits, djoined);
    if (deep_.empty()) {
      fill(dx0, 0.0F);
    } else {
      deep_.backward(pass, x0, joined.columns(width_, deep_out_),
                     djoined.columns(width_, deep_out_), dx0);
    }
    const Matrix d = djoined.columns(0, width_);  // of the layer's output, then of its input
    for (std::size_t l = cross_.size(); l-- > 0;) {
      const CrossLayer& layer = cross_[l];
      const ConstMatrix x = l == 0 ? x0 : pass.scratch(cross_[l - 1].output);
      cross_backward(x0, pass.scratch(layer.product), d, dx0, du);
      sum_columns(du, pass.gradient(layer.bias).data, pass.accumulate());
      pass.gemm().multiply_tn(du, x, pass.gradient(layer.weight), pass.accumulate());
      pass.finished(layer.bias);
      pass.finished(layer.weight);
      pass.gemm().multiply_nn(du, pass.value(layer.weight), pass.scratch(dx_));
      add(pass.scratch(dx_), d);
    }
    copy(dx0.columns(num_numeric_, dpooled.cols), dpooled);
    add(d.columns(num_numeric_, dpooled.cols), dpooled);
  }

 private:
  struct CrossLayer {
    ParameterId weight, bias;
    ScratchId product, output;
  };
  std::int64_t num_numeric_, width_;
  Mlp deep_;
  std::int64_t deep_out_;
  std::vector<CrossLayer> cross_;
  std::optional<Heads> heads_;
  ScratchId x0_, joined_, djoined_, dx0_, dx_, du_;
};

}  // namespace

std::unique_ptr<Model> make_dcn_v2(const job::ModelConfig& config,
                                   const InputShape& shape,
                                   Layout& layout) {
  return std::make_unique<DcnV2>(config, shape, layout);
}

}  // namespace satrap::dense
