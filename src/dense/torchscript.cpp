#include "src/dense/torchscript.h"

#include <stdexcept>

#include "satrap/core/error.h"
#include "src/dense/libtorch.h"

namespace satrap::dense {
namespace {

/// Calls use(libtorch, module), with the module of a script that returns `logits`.
template <class Use>
auto with_module(const Script& script,
                 const std::string& logits,
                 const Layout& layout,
                 std::span<const float> parameters,
                 std::span<const float> buffers,
                 const Use& use) {
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
  const Libtorch& library = libtorch();
  try {
    return use(library, file);
  } catch (const std::runtime_error& error) {  // the script is ours
    throw Error(
        ErrorCode::kInternal,
        concat("libtorch refuses the network's TorchScript: ", error.what(), "\n", file.source));
  }
}

}  // namespace

std::string to_torchscript(const Model& model,
                           const Layout& layout,
                           std::span<const float> parameters,
                           std::span<const float> buffers) {
  Script script(layout);
  const std::string logits = model.write(script);
  return with_module(
      script, logits, layout, parameters, buffers,
      [](const Libtorch& library, const ScriptFile& file) { return library.save(file); });
}

std::unique_ptr<ScriptModule> compile_script(const Script& script,
                                             const std::string& logits,
                                             const Layout& layout,
                                             std::span<const float> parameters,
                                             std::span<const float> buffers,
                                             std::int64_t num_labels) {
  return with_module(script, logits, layout, parameters, buffers,
                     [&](const Libtorch& library, const ScriptFile& file) {
                       return library.compile(file, num_labels);
                     });
}

}  // namespace satrap::dense
