#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/dense/libtorch.h"
#include "src/dense/parameters.h"

namespace satrap::dense {

/// The forward pass of a model, written as operations on named values. Layers and models call the
/// operations, each of which returns the name of its result. TorchScriptText writes them as
/// TorchScript, OnnxScript as a graph of ONNX. The first dimension of a value is that of the rows;
/// dimensions are counted from it, as 0.
class Script {
 public:
  virtual ~Script() = default;

  /// The inputs: [rows, num_numeric] and [rows, pooled_width].
  std::string numeric() const { return "numeric"; }
  std::string pooled() const { return pooled_; }
  /// What stands for it from now on.
  void set_pooled(std::string name) { pooled_ = std::move(name); }

  /// x W^T [+ b] over the last dimension of x; W is [out, in].
  virtual std::string linear(const std::string& x,
                             ParameterId weight,
                             std::optional<ParameterId> bias = std::nullopt) = 0;

  /// torch's nn.BatchNorm1d with its default momentum and eps, of [rows, width].
  struct BatchNormNumbers {
    ParameterId weight, bias;
    BufferId running_mean, running_var;
  };
  virtual std::string batch_norm(const std::string& x, const BatchNormNumbers& numbers) = 0;

  /// Number by number. Dimensions of size 1 are broadcast.
  virtual std::string add(const std::string& x, const std::string& y) = 0;
  virtual std::string subtract(const std::string& x, const std::string& y) = 0;
  virtual std::string multiply(const std::string& x, const std::string& y) = 0;
  virtual std::string scale(float factor, const std::string& x) = 0;
  virtual std::string relu(const std::string& x) = 0;

  /// Over the last dimension.
  virtual std::string softmax(const std::string& x) = 0;
  /// Without the dimension; and [rows, width] to [rows, 1].
  virtual std::string sum(const std::string& x, std::int64_t dim) = 0;
  virtual std::string sum_columns(const std::string& x) = 0;

  /// The matrices of each row: [rows, n, k] [rows, k, m], and [rows, n, m] to [rows, m, n].
  virtual std::string matmul(const std::string& x, const std::string& y) = 0;
  virtual std::string transpose(const std::string& x) = 0;
  /// What is below the diagonal, line by line: [rows, n, n] to [rows, n (n - 1) / 2].
  virtual std::string below_diagonal(const std::string& x, std::int64_t n) = 0;

  /// Side by side. One value is itself.
  std::string join(const std::vector<std::string>& values, std::int64_t dim) {
    return values.size() == 1 ? values.front() : concatenated(values, dim);
  }
  virtual std::string slice(const std::string& x,
                            std::int64_t dim,
                            std::int64_t first,
                            std::int64_t count) = 0;
  /// [rows, ...] to [rows, shape...], in the same order.
  virtual std::string reshape(const std::string& x, const std::vector<std::int64_t>& shape) = 0;
  /// [rows, width] to [rows, times, width].
  virtual std::string repeat(const std::string& x, std::int64_t times) = 0;

  /// A layer's output [rows, width] after its dropout, as ops.h computes it from a step's seed and
  /// `stream`. Where nothing is trained it is the output.
  virtual std::string drop(const std::string& x,
                           std::int64_t /*width*/,
                           double /*rate*/,
                           std::uint64_t /*stream*/) {
    return x;
  }

  /// The result of a module's own forward(numeric, pooled), as one column per output. The module
  /// uses the layout's parameters, in their order.
  virtual std::string call(std::shared_ptr<const ScriptModule> module,
                           std::int64_t num_outputs) = 0;

 protected:
  virtual std::string concatenated(const std::vector<std::string>& values, std::int64_t dim) = 0;

 private:
  std::string pooled_ = "pooled";
};

}  // namespace satrap::dense
