#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/dense/matrix.h"
#include "src/dense/parameters.h"
#include "src/dense/pass.h"
#include "src/dense/script.h"

namespace satrap::dense {

/// Every layer writes its forward pass in evaluation mode to a Script: write(script, x) returns the
/// name of y.

/// Where a layer starts. kUniform: weights and bias within 1/sqrt(in), the default of PyTorch's
/// nn.Linear. kGlorot: weights within sqrt(6 / (in + out)) (Glorot and Bengio 2010), bias as
/// before.
enum class Initial { kUniform, kGlorot, kZero };

/// The range of kUniform; 0 without inputs.
float uniform_range(std::int64_t in);

/// y = x W^T + b, torch's nn.Linear, followed by an optional ReLU. W is [out, in].
class Linear {
 public:
  Linear(Layout& layout,
         const std::string& name,
         std::int64_t in,
         std::int64_t out,
         bool relu,
         Initial initial = Initial::kUniform);

  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }
  ParameterId bias() const { return bias_; }

  void forward(Pass& pass, ConstJoined x, Matrix y) const;
  std::string write(Script& script, const std::string& x) const;

  /// Changes `dy`, the gradient of y. dx is split as x is; a part of it whose data is null is not
  /// computed.
  void backward(Pass& pass, ConstJoined x, ConstMatrix y, Matrix dy, Joined dx) const;

 private:
  void dot_backward(Pass& pass, ConstJoined x, ConstMatrix dy, Joined dx) const;
  void finished(Pass& pass) const;

  std::int64_t in_, out_;
  bool relu_;
  ParameterId weight_, bias_;
};

/// torch's nn.BatchNorm1d with its default momentum and eps, in place, and an optional ReLU.
class BatchNorm {
 public:
  BatchNorm(Layout& layout, const std::string& name, std::int64_t width, bool relu);
  void forward(Pass& pass, Matrix x) const;
  std::string write(Script& script, const std::string& x) const;
  /// `y` is x after forward; `dy` becomes the gradient of x.
  void backward(Pass& pass, ConstMatrix y, Matrix dy) const;

 private:
  bool relu_;
  ParameterId weight_, bias_;
  BufferId running_mean_, running_var_;
  ScratchId xhat_, invstd_;
};

struct MlpOptions {
  bool relu = true;           // after every layer but the last
  bool relu_last = true;      // after the last
  bool batch_norm = false;    // after every linear layer, before its ReLU
  double dropout = 0.0;       // after every ReLU but the last layer's
  bool dropout_last = false;  // after the last layer's too
  // Largest number of input rows per row of the pass; above 1 only without batch norm and dropout.
  std::int64_t inputs_per_row = 1;
};

/// Linear layers one after the other, named `name`.0, `name`.1, ...
class Mlp {
 public:
  Mlp(Layout& layout,
      const std::string& name,
      std::int64_t in,
      std::vector<std::int64_t> widths,
      const MlpOptions& options);

  bool empty() const { return layers_.empty(); }
  std::int64_t in() const { return in_; }
  std::int64_t out() const;  // in() if there is no layer
  ParameterId last_bias() const { return layers_.back().linear.bias(); }  // requires a layer

  /// Requires a layer.
  void forward(Pass& pass, ConstJoined x, Matrix out) const;
  /// x itself if there is no layer.
  std::string write(Script& script, std::string x) const;
  /// `out` is as forward left it; changes `dout`; dx as in Linear.
  void backward(Pass& pass, ConstJoined x, ConstMatrix out, Matrix dout, Joined dx) const;

 private:
  struct Layer {
    Linear linear;
    std::optional<BatchNorm> batch_norm;
    double dropout;
    ScratchId output;  // of every layer but the last
    std::uint64_t dropout_stream;
  };
  std::int64_t in_;
  std::vector<Layer> layers_;
  ScratchId delta_[2] = {};  // gradients of outputs, alternating
};

}  // namespace satrap::dense
