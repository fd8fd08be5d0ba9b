#include "src/dense/script.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::dense {

std::string attribute_name(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string Script::parameter(ParameterId id) const {
  return "self." + attribute_name(layout_.parameters()[id].name);
}

std::string Script::buffer(BufferId id) const {
  return "self." + attribute_name(layout_.buffers()[id].name);
}

std::string Script::let(const std::string& expression) {
  std::string name = concat("x", num_values_++);
  body_ += concat("    ", name, " = ", expression, "\n");
  return name;
}

std::string Script::call(std::shared_ptr<const ScriptModule> module, std::int64_t num_labels) {
  module_ = std::move(module);
  return let("self.module.forward(" + numeric() + ", " + pooled() + ").reshape([-1, " +
             std::to_string(num_labels) + "])");
}

std::string Script::source(const std::string& result) const {
  return "def forward(self, numeric: Tensor, pooled: Tensor) -> Tensor:\n" + body_ + "    return " +
         result + "\n";
}

}  // namespace satrap::dense
