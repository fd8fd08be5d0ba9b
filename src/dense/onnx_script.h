#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/dense/onnx_graph.h"
#include "src/dense/script.h"

namespace satrap::dense {

/// A script as a graph of ONNX, in evaluation form: an operation is a node, or a few.
class OnnxScript : public Script {
 public:
  /// `layout` and the numbers, flat as it says, must outlive it.
  OnnxScript(const Layout& layout,
             std::span<const float> parameters,
             std::span<const float> buffers)
      : layout_(layout), parameters_(parameters), buffers_(buffers) {}

  std::string linear(const std::string& x,
                     ParameterId weight,
                     std::optional<ParameterId> bias) override;
  std::string batch_norm(const std::string& x, const BatchNormNumbers& numbers) override;
  std::string add(const std::string& x, const std::string& y) override;
  std::string subtract(const std::string& x, const std::string& y) override;
  std::string multiply(const std::string& x, const std::string& y) override;
  std::string scale(float factor, const std::string& x) override;
  std::string relu(const std::string& x) override;
  std::string softmax(const std::string& x) override;
  std::string sum(const std::string& x, std::int64_t dim) override;
  std::string sum_columns(const std::string& x) override;
  std::string matmul(const std::string& x, const std::string& y) override;
  std::string transpose(const std::string& x) override;
  std::string below_diagonal(const std::string& x, std::int64_t n) override;
  std::string slice(const std::string& x,
                    std::int64_t dim,
                    std::int64_t first,
                    std::int64_t count) override;
  std::string reshape(const std::string& x, const std::vector<std::int64_t>& shape) override;
  std::string repeat(const std::string& x, std::int64_t times) override;
  /// Throws Error(kInvalidConfig): a user's module is no graph of satrap's.
  std::string call(std::shared_ptr<const ScriptModule> module, std::int64_t num_outputs) override;

  /// The whole graph; its output `logits` is `result`, [rows, num_outputs].
  OnnxGraph graph(const std::string& result,
                  std::int64_t num_numeric,
                  std::int64_t pooled_width,
                  std::int64_t num_outputs) const;

 private:
  std::string concatenated(const std::vector<std::string>& values, std::int64_t dim) override;

  std::string node(const std::string& op,
                   std::vector<std::string> inputs,
                   std::vector<OnnxGraph::Attribute> attributes = {});
  std::string sum_over(const std::string& x, std::int64_t dim, bool keeps_dim);
  std::string parameter(ParameterId id);
  std::string transposed(ParameterId id);
  std::string buffer(BufferId id);
  std::string integers(std::vector<std::int64_t> values);
  std::string initializer(OnnxGraph::Tensor&& tensor);

  const Layout& layout_;
  const std::span<const float> parameters_, buffers_;
  std::vector<OnnxGraph::Node> nodes_;
  std::map<std::string, OnnxGraph::Tensor> initializers_;  // by name
};

}  // namespace satrap::dense
