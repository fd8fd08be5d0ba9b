#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace satrap::dense {

/// A graph of ONNX with its numbers, as much of it as satrap writes. Operators are those of
/// operator set kOperatorSet; a name in `inputs` of a node is that of a node before it, of an
/// initializer or of an input of the graph.
struct OnnxGraph {
  // Read by every ONNX Runtime since 1.6 (2020).
  static constexpr std::int64_t kOperatorSet = 13, kIrVersion = 7;

  struct Attribute {
    std::string name;
    std::variant<std::int64_t, float, std::vector<std::int64_t>> value;
  };
  struct Node {
    std::string op;
    std::vector<std::string> inputs;
    std::string output;
    std::vector<Attribute> attributes = {};
  };
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::variant<std::vector<float>, std::vector<std::int64_t>> values;
  };
  /// fp32, [rows, columns] with any number of rows.
  struct Matrix {
    std::string name;
    std::int64_t columns = 0;
  };

  std::vector<Matrix> inputs, outputs;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
};

/// What satrap takes from protobuf. It is in a shared library of its own, which onnx_library()
/// opens when it is first needed, so that satrap runs without it. The two sides share only this
/// header.
class OnnxLibrary {
 public:
  virtual ~OnnxLibrary() = default;

  virtual std::string describe() const = 0;  // "protobuf 3.21.12"
  /// The bytes of a file, which may be at most 2 GiB.
  virtual std::string write(const OnnxGraph& graph) const = 0;
};

/// Opens the library on the first call. Throws Error(kUnavailable) if it is not there.
const OnnxLibrary& onnx_library();

}  // namespace satrap::dense
