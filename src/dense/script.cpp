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

std::string Script::drop(const std::string& x,
                         std::int64_t width,
                         double rate,
                         std::uint64_t stream) {
  if (!is_training() || rate == 0.0) return x;
  dropouts_.push_back({.first = num_factors_, .width = width, .rate = rate, .stream = stream});
  num_factors_ += width;
  return let(concat(x, " * factors[:, ", dropouts_.back().first, ":", num_factors_, "]"));
}

std::string Script::source(const std::string& result) const {
  return concat("def forward(self, numeric: Tensor, pooled: Tensor",
                is_training() ? ", factors: Tensor" : "", ") -> Tensor:\n", body_, "    return ",
                result, "\n");
}

}  // namespace satrap::dense
