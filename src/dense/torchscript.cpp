#include "src/dense/torchscript.h"

#include <stdexcept>

#include "satrap/core/error.h"

namespace satrap::dense {

ScriptFile script_file(const TorchScriptText& script,
                       const std::string& logits,
                       const Layout& layout,
                       std::span<const float> parameters,
                       std::span<const float> buffers) {
  ScriptFile file;
  // squeeze leaves several columns unchanged.
  file.source = script.source("torch.squeeze(" + logits + ", 1)");
  file.module = script.module();
  for (const Parameter& p : layout.parameters()) {
    file.parameters.push_back({attribute_name(p.name), p.shape, parameters.data() + p.offset});
  }
  for (const Buffer& b : layout.buffers()) {
    file.buffers.push_back({attribute_name(b.name), {b.size}, buffers.data() + b.offset});
  }
  return file;
}

std::string to_torchscript(const Model& model,
                           const Layout& layout,
                           std::span<const float> parameters,
                           std::span<const float> buffers) {
  TorchScriptText script(layout);
  const std::string logits = model.write(script);
  const ScriptFile file = script_file(script, logits, layout, parameters, buffers);
  const Libtorch& library = libtorch();  // says itself what is missing
  try {
    return library.save(file);
  } catch (const std::runtime_error& error) {  // the script is ours
    throw Error(
        ErrorCode::kInternal,
        concat("libtorch refuses the network's TorchScript: ", error.what(), "\n", file.source));
  }
}

}  // namespace satrap::dense
