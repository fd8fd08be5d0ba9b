#include "src/dense/onnx.h"

#include "satrap/core/error.h"
#include "satrap/core/loaded_library.h"
#include "satrap/core/text.h"
#include "src/dense/onnx_graph.h"
#include "src/dense/onnx_script.h"

namespace satrap::dense {
namespace {

// protobuf's limit is 2 GiB; what is no number takes little of the rest.
constexpr std::int64_t kMostBytes = 2'000'000'000;

void check_bytes(const Layout& layout) {
  const std::int64_t bytes = (layout.num_parameters() + layout.num_buffer_values()) *
                             static_cast<std::int64_t>(sizeof(float));
  if (bytes <= kMostBytes) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("--network onnx: the numbers of the network take ", format_bytes(bytes),
                     ", and a file of ONNX holds 2 GB, which is protobuf's limit; write --network "
                     "torchscript"));
}

}  // namespace

const OnnxLibrary& onnx_library() {
  static const OnnxLibrary& opened = *reinterpret_cast<const OnnxLibrary* (*)()>(
      open_library({"libsatrap_onnx.so", "satrap_onnx", "the export of a network as ONNX",
                    "satrap's packages have it in lib/ beside bin/; for a build of your own run "
                    "./launch/setup.sh run, configure and build again; or write --network "
                    "torchscript, which needs PyTorch"}))();
  return opened;
}

std::string describe_onnx() { return onnx_library().describe(); }

std::string to_onnx(const Model& model,
                    const InputShape& shape,
                    const Layout& layout,
                    std::span<const float> parameters,
                    std::span<const float> buffers) {
  check_bytes(layout);
  OnnxScript script(layout, parameters, buffers);
  const std::string logits = model.write(script);
  return onnx_library().write(
      script.graph(logits, shape.num_numeric, shape.pooled_width(), shape.num_outputs()));
}

}  // namespace satrap::dense
