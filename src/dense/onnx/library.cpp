#include <bit>
#include <string>
#include <string_view>
#include <type_traits>

#include <google/protobuf/stubs/common.h>
#include <onnx.pb.h>

#include "src/dense/onnx_graph.h"

namespace satrap::dense {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data of a tensor is little endian");

void write_attribute(const OnnxGraph::Attribute& attribute, onnx_format::AttributeProto& to) {
  to.set_name(attribute.name);
  if (const auto* const integer = std::get_if<std::int64_t>(&attribute.value)) {
    to.set_type(onnx_format::AttributeProto::INT);
    to.set_i(*integer);
  } else if (const auto* const number = std::get_if<float>(&attribute.value)) {
    to.set_type(onnx_format::AttributeProto::FLOAT);
    to.set_f(*number);
  } else {
    to.set_type(onnx_format::AttributeProto::INTS);
    for (const std::int64_t i : std::get<std::vector<std::int64_t>>(attribute.value))
      to.add_ints(i);
  }
}

void write_node(const OnnxGraph::Node& node, onnx_format::NodeProto& to) {
  for (const std::string& input : node.inputs) to.add_input(input);
  to.add_output(node.output);
  to.set_name(node.output);
  to.set_op_type(node.op);
  for (const OnnxGraph::Attribute& a : node.attributes) write_attribute(a, *to.add_attribute());
}

void write_tensor(const OnnxGraph::Tensor& tensor, onnx_format::TensorProto& to) {
  for (const std::int64_t size : tensor.shape) to.add_dims(size);
  to.set_name(tensor.name);
  std::visit(
      [&](const auto& values) {
        using Value = std::decay_t<decltype(values)>::value_type;
        to.set_data_type(std::is_same_v<Value, float> ? onnx_format::FLOAT : onnx_format::INT64);
        to.set_raw_data(values.data(), values.size() * sizeof(Value));
      },
      tensor.values);
}

void write_matrix(const OnnxGraph::Matrix& matrix, onnx_format::ValueInfoProto& to) {
  to.set_name(matrix.name);
  onnx_format::TypeProto::Tensor& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_format::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("rows");
  type.mutable_shape()->add_dim()->set_dim_value(matrix.columns);
}

class ProtobufLibrary : public OnnxLibrary {
 public:
  std::string describe() const override {
    return "protobuf " + google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  }

  std::string write(const OnnxGraph& graph) const override {
    onnx_format::ModelProto model;
    model.set_ir_version(OnnxGraph::kIrVersion);
    model.set_producer_name("satrap");
    model.set_producer_version(SATRAP_VERSION);
    onnx_format::OperatorSetIdProto& operators = *model.add_opset_import();
    operators.set_domain("");
    operators.set_version(OnnxGraph::kOperatorSet);
    onnx_format::GraphProto& to = *model.mutable_graph();
    to.set_name("dense");
    for (const OnnxGraph::Matrix& input : graph.inputs) write_matrix(input, *to.add_input());
    for (const OnnxGraph::Matrix& output : graph.outputs) write_matrix(output, *to.add_output());
    for (const OnnxGraph::Node& node : graph.nodes) write_node(node, *to.add_node());
    for (const OnnxGraph::Tensor& t : graph.initializers) write_tensor(t, *to.add_initializer());
    return model.SerializeAsString();
  }
};

}  // namespace
}  // namespace satrap::dense

extern "C" const satrap::dense::OnnxLibrary* satrap_onnx();
const satrap::dense::OnnxLibrary* satrap_onnx() {
  static const satrap::dense::ProtobufLibrary library;
  return &library;
}
