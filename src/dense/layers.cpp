#include "src/dense/layers.h"

#include <algorithm>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

float glorot_range(std::int64_t in, std::int64_t out) {
  return std::sqrt(6.0F / static_cast<float>(in + out));
}

}  // namespace

float uniform_range(std::int64_t in) {
  return in == 0 ? 0.0F : 1.0F / std::sqrt(static_cast<float>(in));
}

Linear::Linear(Layout& layout,
               const std::string& name,
               std::int64_t in,
               std::int64_t out,
               bool relu,
               Initial initial)
    : in_(in), out_(out), relu_(relu) {
  const float range = initial == Initial::kZero ? 0.0F : uniform_range(in);
  const bool glorot = initial == Initial::kGlorot;
  weight_ =
      layout.add_parameter(name + ".weight", {out, in}, glorot ? glorot_range(in, out) : range);
  bias_ = layout.add_parameter(name + ".bias", {out}, range);
}

void Linear::forward(Pass& pass, ConstJoined x, Matrix y) const {
  const ConstMatrix weight = pass.value(weight_);
  const float* bias = pass.value(bias_).data;
  const ConstMatrix left = weight.columns(0, x.left.cols);
  const ConstMatrix right = weight.columns(x.left.cols, x.right.cols);
  if (out_ == 1 && !relu_) {
    dot_rows(x.left, left.data, bias, y, /*add=*/false);
    if (x.is_split()) dot_rows(x.right, right.data, nullptr, y, /*add=*/true);
    return;
  }
  if (x.is_split()) pass.gemm().multiply_nt(x.right, right, y);
  pass.gemm().multiply_nt(x.left, left, y,
                          {.accumulate = x.is_split(), .bias = bias, .relu = relu_});
}

std::string Linear::write(Script& script, const std::string& x) const {
  const std::string y = script.linear(x, weight_, bias_);
  return relu_ ? script.relu(y) : y;
}

void Linear::backward(Pass& pass, ConstJoined x, ConstMatrix y, Matrix dy, Joined dx) const {
  if (out_ == 1 && !relu_) return dot_backward(pass, x, dy, dx);
  float* dbias = pass.gradient(bias_).data;
  if (relu_) {
    relu_backward_sum_columns(y, dy, dbias, pass.accumulate());
  } else {
    sum_columns(dy, dbias, pass.accumulate());
  }
  const ConstMatrix weight = pass.value(weight_);
  const Matrix dweight = pass.gradient(weight_);
  const auto multiply_tn = [&](ConstMatrix part, std::int64_t first) {
    pass.gemm().multiply_tn(dy, part, dweight.columns(first, part.cols), pass.accumulate());
  };
  multiply_tn(x.left, 0);
  if (x.is_split()) multiply_tn(x.right, x.left.cols);
  finished(pass);
  const auto multiply_nn = [&](Matrix part, std::int64_t first) {
    if (part.data == nullptr) return;
    pass.gemm().multiply_nn(dy, weight.columns(first, part.cols), part);
  };
  multiply_nn(dx.left, 0);
  multiply_nn(dx.right, x.left.cols);
}

void Linear::dot_backward(Pass& pass, ConstJoined x, ConstMatrix dy, Joined dx) const {
  const ConstMatrix weight = pass.value(weight_);
  const Matrix dweight = pass.gradient(weight_);
  dot_rows_backward(x.left, weight.data, dy, dx.left, dweight.data, pass.gradient(bias_).data,
                    pass.accumulate());
  if (x.is_split()) {
    dot_rows_backward(x.right, weight.data + x.left.cols, dy, dx.right, dweight.data + x.left.cols,
                      nullptr, pass.accumulate());
  }
  finished(pass);
}

void Linear::finished(Pass& pass) const {
  pass.finished(bias_);
  pass.finished(weight_);
}

BatchNorm::BatchNorm(Layout& layout, const std::string& name, std::int64_t width, bool relu)
    : relu_(relu),
      weight_(layout.add_parameter(name + ".weight", {width}, 0.0F, 1.0F)),
      bias_(layout.add_parameter(name + ".bias", {width}, 0.0F, 0.0F)),
      running_mean_(layout.add_buffer(name + ".running_mean", width, 0.0F)),
      running_var_(layout.add_buffer(name + ".running_var", width, 1.0F)),
      xhat_(layout.add_scratch(width)),
      invstd_(layout.add_scratch(width, 1)) {}

void BatchNorm::forward(Pass& pass, Matrix x) const {
  const BatchNormArgs args{pass.value(weight_).data, pass.value(bias_).data,
                           pass.buffer(running_mean_), pass.buffer(running_var_)};
  if (pass.training()) {
    batch_norm(x, args, pass.scratch(xhat_), pass.scratch(invstd_).data,
               pass.new_buffer(running_mean_), pass.new_buffer(running_var_));
  } else {
    batch_norm_eval(x, args);
  }
  if (relu_) relu(x);
}

std::string BatchNorm::write(Script& script, const std::string& x) const {
  const std::string y = script.batch_norm(x, {weight_, bias_, running_mean_, running_var_});
  return relu_ ? script.relu(y) : y;
}

void BatchNorm::backward(Pass& pass, ConstMatrix y, Matrix dy) const {
  if (relu_) relu_backward(y, dy);
  batch_norm_backward(pass.scratch(xhat_), pass.scratch(invstd_).data, pass.value(weight_).data, dy,
                      pass.gradient(weight_).data, pass.gradient(bias_).data, pass.accumulate());
  pass.finished(bias_);
  pass.finished(weight_);
}

Mlp::Mlp(Layout& layout,
         const std::string& name,
         std::int64_t in,
         std::vector<std::int64_t> widths,
         const MlpOptions& options)
    : in_(in) {
  SATRAP_CHECK(options.inputs_per_row == 1 || (!options.batch_norm && options.dropout == 0.0),
               "several inputs per row, with batch norm or dropout");
  std::int64_t width = in, widest = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool last = i + 1 == widths.size();
    const bool relu = last ? options.relu_last : options.relu;
    const std::string layer = name + "." + std::to_string(i);
    layers_.push_back(
        {.linear = Linear(layout, layer, width, widths[i], relu && !options.batch_norm),
         .batch_norm = std::nullopt,
         .dropout = relu && (!last || options.dropout_last) ? options.dropout : 0.0,
         .output = last ? ScratchId{} : layout.add_scratch(widths[i] * options.inputs_per_row),
         .dropout_stream = static_cast<std::uint64_t>(layout.num_parameters())});
    if (options.batch_norm) {
      layers_.back().batch_norm.emplace(layout, layer + ".batch_norm", widths[i], relu);
    }
    width = widths[i];
    if (!last) widest = std::max(widest, width);
  }
  if (widest > 0) {
    for (ScratchId& delta : delta_) delta = layout.add_scratch(widest * options.inputs_per_row);
  }
}

std::int64_t Mlp::out() const { return layers_.empty() ? in_ : layers_.back().linear.out(); }

void Mlp::forward(Pass& pass, ConstJoined x, Matrix out) const {
  SATRAP_CHECK(!layers_.empty(), "an MLP without layers computes nothing");
  for (const Layer& layer : layers_) {
    const Matrix y = &layer == &layers_.back()
                         ? out
                         : Matrix(pass.scratch(layer.output).data, x.rows(), layer.linear.out());
    layer.linear.forward(pass, x, y);
    if (layer.batch_norm) layer.batch_norm->forward(pass, y);
    if (layer.dropout > 0.0 && pass.training()) {
      dropout(y, layer.dropout, hash64(pass.dropout_seed(), layer.dropout_stream),
              pass.first_example());
    }
    x = y;
  }
}

std::string Mlp::write(Script& script, std::string x) const {
  for (const Layer& layer : layers_) {
    x = layer.linear.write(script, x);
    if (layer.batch_norm) x = layer.batch_norm->write(script, x);
    x = script.drop(x, layer.linear.out(), layer.dropout, layer.dropout_stream);
  }
  return x;
}

void Mlp::backward(Pass& pass, ConstJoined x, ConstMatrix out, Matrix dout, Joined dx) const {
  ConstMatrix y = out;
  Matrix dy = dout;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const Matrix before =  // the output of the layer before
        i == 0 ? Matrix()
               : Matrix(pass.scratch(layers_[i - 1].output).data, x.rows(), layer.linear.in());
    const Matrix dbefore =
        i == 0 ? Matrix() : Matrix(pass.scratch(delta_[i % 2]).data, before.rows, before.cols);
    // A dropped element of y is zero, and so its gradient is masked together with the ReLU's.
    if (layer.dropout > 0.0) scale(dy, static_cast<float>(1.0 / (1.0 - layer.dropout)));
    if (layer.batch_norm) layer.batch_norm->backward(pass, y, dy);
    layer.linear.backward(pass, i == 0 ? x : before, y, dy, i == 0 ? dx : dbefore);
    y = before;
    dy = dbefore;
  }
}

}  // namespace satrap::dense
