#include "satrap/app/host_program.h"

#include "satrap/core/error.h"

namespace satrap::app {

pipeline::MakeNetwork network_of(const job::JobConfig& config,
                                 const HostProgram& host,
                                 const std::string& command) {
  if (config.model.type != job::ModelType::kPython) return {};
  if (host.network) return host.network(config);
  if (config.model.path.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "model: 'python' is a network of a program in Python, which alone computes it: run "
                "the program, in which satrap.Trainer trains it and satrap.evaluate, "
                "satrap.predict and satrap.export use it (docs/python.md)");
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("model: 'python' (", config.model.path,
                     ") is computed by PyTorch, in Python: run `python -m satrap ", command,
                     "`, where the package satrap and PyTorch are installed (docs/python.md)"));
}

}  // namespace satrap::app
