#include "src/dense/onnx_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::dense {
namespace {

using testing::ElementsAre;

std::vector<std::string> ops_of(const OnnxGraph& graph) {
  std::vector<std::string> ops;
  for (const OnnxGraph::Node& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

const OnnxGraph::Tensor& tensor_named(const OnnxGraph& graph, const std::string& name) {
  for (const OnnxGraph::Tensor& tensor : graph.initializers) {
    if (tensor.name == name) return tensor;
  }
  throw std::runtime_error("no initializer " + name);
}

const std::vector<std::int64_t>& integers_of(const OnnxGraph& graph, const std::string& name) {
  return std::get<std::vector<std::int64_t>>(tensor_named(graph, name).values);
}

TEST(OnnxScript, ALinearLayerMultipliesByTheTransposedWeightWhichIsWrittenOnce) {
  Layout layout;
  const ParameterId weight = layout.add_parameter("w", {2, 3}, 1.0F);
  const ParameterId bias = layout.add_parameter("b", {2}, 1.0F);
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8};
  OnnxScript script(layout, numbers, {});
  const std::string x = script.linear(script.numeric(), weight, bias);
  const std::string y = script.linear(script.numeric(), weight, std::nullopt);
  const OnnxGraph graph = script.graph(script.add(x, y), 3, 4, 2);
  EXPECT_THAT(ops_of(graph), ElementsAre("MatMul", "Add", "MatMul", "Add", "Identity"));
  EXPECT_THAT(graph.nodes[0].inputs, ElementsAre("numeric", "w.transposed"));
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(graph.nodes[0].output, "b"));
  ASSERT_EQ(graph.initializers.size(), 2U);
  const OnnxGraph::Tensor& transposed = tensor_named(graph, "w.transposed");
  EXPECT_THAT(transposed.shape, ElementsAre(3, 2));
  EXPECT_THAT(std::get<std::vector<float>>(transposed.values), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(std::get<std::vector<float>>(tensor_named(graph, "b").values), ElementsAre(7, 8));
  EXPECT_EQ(graph.inputs[0].columns, 3);
  EXPECT_EQ(graph.inputs[1].columns, 4);
  EXPECT_EQ(graph.outputs[0].columns, 2);
  EXPECT_EQ(graph.nodes.back().output, "logits");
}

TEST(OnnxScript, PairsAreGatheredBelowTheDiagonalLineByLine) {
  const Layout layout;
  OnnxScript script(layout, {}, {});
  const OnnxGraph graph = script.graph(script.below_diagonal("x", 3), 0, 0, 1);
  EXPECT_THAT(ops_of(graph), ElementsAre("Reshape", "Gather", "Identity"));
  EXPECT_THAT(integers_of(graph, graph.nodes[0].inputs[1]), ElementsAre(-1, 9));
  EXPECT_THAT(integers_of(graph, graph.nodes[1].inputs[1]), ElementsAre(3, 6, 7));
}

TEST(OnnxScript, AGateIsASoftmaxAndAWeightedSumOfExperts) {
  const Layout layout;
  OnnxScript script(layout, {}, {});
  const std::string experts = script.reshape(script.join({"a", "b"}, 1), {2, 3});
  const std::string gate = script.reshape(script.softmax("g"), {2, 1});
  const OnnxGraph graph = script.graph(script.sum(script.multiply(gate, experts), 1), 0, 0, 3);
  EXPECT_THAT(ops_of(graph), ElementsAre("Concat", "Reshape", "Softmax", "Reshape", "Mul",
                                         "ReduceSum", "Identity"));
  EXPECT_EQ(std::get<std::int64_t>(graph.nodes[5].attributes[0].value), 0);  // keepdims
  EXPECT_THAT(integers_of(graph, graph.nodes[5].inputs[1]), ElementsAre(1));
}

TEST(OnnxScript, AUsersModuleIsRefused) {
  const Layout layout;
  OnnxScript script(layout, {}, {});
  EXPECT_THROW(script.call(nullptr, 1), Error);
}

}  // namespace
}  // namespace satrap::dense
