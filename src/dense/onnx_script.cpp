#include "src/dense/onnx_script.h"

#include <utility>

#include "satrap/core/error.h"

namespace satrap::dense {
namespace {

constexpr float kBatchNormEps = 1e-5F;  // torch's, as in ops.h

std::vector<float> numbers_of(std::span<const float> values,
                              std::int64_t first,
                              std::int64_t count) {
  const auto of = values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  return {of.begin(), of.end()};
}

std::vector<std::int64_t> after_rows(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> all = {-1};
  all.insert(all.end(), shape.begin(), shape.end());
  return all;
}

}  // namespace

std::string OnnxScript::node(const std::string& op,
                             std::vector<std::string> inputs,
                             std::vector<OnnxGraph::Attribute> attributes) {
  nodes_.push_back({op, std::move(inputs), concat("x", nodes_.size()), std::move(attributes)});
  return nodes_.back().output;
}

std::string OnnxScript::initializer(OnnxGraph::Tensor&& tensor) {
  std::string name = tensor.name;
  initializers_.try_emplace(name, std::move(tensor));
  return name;
}

std::string OnnxScript::integers(std::vector<std::int64_t> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return initializer({concat("c", initializers_.size()), {size}, std::move(values)});
}

std::string OnnxScript::parameter(ParameterId id) {
  const Parameter& p = layout_.parameters()[id];
  return initializer({p.name, p.shape, numbers_of(parameters_, p.offset, p.size())});
}

std::string OnnxScript::transposed(ParameterId id) {
  const Parameter& p = layout_.parameters()[id];
  const std::int64_t rows = p.shape[0], cols = p.shape[1];
  const std::vector<float> values = numbers_of(parameters_, p.offset, p.size());
  std::vector<float> columns;
  columns.reserve(values.size());
  for (std::int64_t c = 0; c < cols; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      columns.push_back(values[static_cast<std::size_t>(r * cols + c)]);
    }
  }
  return initializer({p.name + ".transposed", {cols, rows}, std::move(columns)});
}

std::string OnnxScript::buffer(BufferId id) {
  const Buffer& b = layout_.buffers()[id];
  return initializer({b.name, {b.size}, numbers_of(buffers_, b.offset, b.size)});
}

// Not Gemm, which takes x of two dimensions alone; runtimes fuse the two where it has two.
std::string OnnxScript::linear(const std::string& x,
                               ParameterId weight,
                               std::optional<ParameterId> bias) {
  const std::string product = node("MatMul", {x, transposed(weight)});
  return bias ? node("Add", {product, parameter(*bias)}) : product;
}

std::string OnnxScript::batch_norm(const std::string& x, const BatchNormNumbers& numbers) {
  return node("BatchNormalization",
              {x, parameter(numbers.weight), parameter(numbers.bias), buffer(numbers.running_mean),
               buffer(numbers.running_var)},
              {{"epsilon", kBatchNormEps}});
}

std::string OnnxScript::add(const std::string& x, const std::string& y) {
  return node("Add", {x, y});
}

std::string OnnxScript::subtract(const std::string& x, const std::string& y) {
  return node("Sub", {x, y});
}

std::string OnnxScript::multiply(const std::string& x, const std::string& y) {
  return node("Mul", {x, y});
}

std::string OnnxScript::scale(float factor, const std::string& x) {
  return node("Mul",
              {initializer({concat("c", initializers_.size()), {}, std::vector{factor}}), x});
}

std::string OnnxScript::relu(const std::string& x) { return node("Relu", {x}); }

std::string OnnxScript::softmax(const std::string& x) {
  return node("Softmax", {x}, {{"axis", std::int64_t{-1}}});
}

std::string OnnxScript::sum_over(const std::string& x, std::int64_t dim, bool keeps_dim) {
  return node("ReduceSum", {x, integers({dim})}, {{"keepdims", std::int64_t{keeps_dim}}});
}

std::string OnnxScript::sum(const std::string& x, std::int64_t dim) {
  return sum_over(x, dim, /*keeps_dim=*/false);
}

std::string OnnxScript::sum_columns(const std::string& x) {
  return sum_over(x, 1, /*keeps_dim=*/true);
}

std::string OnnxScript::matmul(const std::string& x, const std::string& y) {
  return node("MatMul", {x, y});
}

std::string OnnxScript::transpose(const std::string& x) {
  return node("Transpose", {x}, {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
}

std::string OnnxScript::below_diagonal(const std::string& x, std::int64_t n) {
  std::vector<std::int64_t> places;
  for (std::int64_t r = 1; r < n; ++r) {
    for (std::int64_t c = 0; c < r; ++c) places.push_back(r * n + c);
  }
  return node("Gather", {reshape(x, {n * n}), integers(std::move(places))},
              {{"axis", std::int64_t{1}}});
}

std::string OnnxScript::concatenated(const std::vector<std::string>& values, std::int64_t dim) {
  return node("Concat", values, {{"axis", dim}});
}

std::string OnnxScript::slice(const std::string& x,
                              std::int64_t dim,
                              std::int64_t first,
                              std::int64_t count) {
  std::vector<std::string> inputs = {x};
  for (const std::int64_t i : {first, first + count, dim}) inputs.push_back(integers({i}));
  return node("Slice", std::move(inputs));
}

std::string OnnxScript::reshape(const std::string& x, const std::vector<std::int64_t>& shape) {
  return node("Reshape", {x, integers(after_rows(shape))});
}

std::string OnnxScript::repeat(const std::string& x, std::int64_t times) {
  return node("Expand", {node("Unsqueeze", {x, integers({1})}), integers({1, times, 1})});
}

std::string OnnxScript::call(std::shared_ptr<const ScriptModule> /*module*/,
                             std::int64_t /*num_outputs*/) {
  throw Error(
      ErrorCode::kInvalidConfig,
      "--network onnx: model 'torchscript' computes what its module says, which satrap does "
      "not write as ONNX; write --network torchscript, or export the module by torch.onnx");
}

OnnxGraph OnnxScript::graph(const std::string& result,
                            std::int64_t num_numeric,
                            std::int64_t pooled_width,
                            std::int64_t num_outputs) const {
  OnnxGraph graph{.inputs = {{numeric(), num_numeric}, {"pooled", pooled_width}},
                  .outputs = {{"logits", num_outputs}},
                  .nodes = nodes_,
                  .initializers = {}};
  graph.nodes.push_back({"Identity", {result}, "logits"});
  for (const auto& [name, tensor] : initializers_) graph.initializers.push_back(tensor);
  return graph;
}

}  // namespace satrap::dense
