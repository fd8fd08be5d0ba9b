#include "src/dense/torchscript_text.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::dense {
namespace {

std::string listed(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : ", ") + value;
  return "[" + list + "]";
}

}  // namespace

std::string attribute_name(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string TorchScriptText::parameter(ParameterId id) const {
  return "self." + attribute_name(layout_.parameters()[id].name);
}

std::string TorchScriptText::buffer(BufferId id) const {
  return "self." + attribute_name(layout_.buffers()[id].name);
}

std::string TorchScriptText::let(const std::string& expression) {
  std::string name = concat("x", num_values_++);
  body_ += concat("    ", name, " = ", expression, "\n");
  return name;
}

std::string TorchScriptText::linear(const std::string& x,
                                    ParameterId weight,
                                    std::optional<ParameterId> bias) {
  return let(concat("torch.linear(", x, ", ", parameter(weight),
                    bias ? ", " + parameter(*bias) : "", ")"));
}

std::string TorchScriptText::batch_norm(const std::string& x, const BatchNormNumbers& numbers) {
  return let(concat("torch.batch_norm(", x, ", ", parameter(numbers.weight), ", ",
                    parameter(numbers.bias), ", ", buffer(numbers.running_mean), ", ",
                    buffer(numbers.running_var), is_training() ? ", True" : ", False",
                    ", 0.1, 1e-5, False)"));
}

std::string TorchScriptText::add(const std::string& x, const std::string& y) {
  return let(x + " + " + y);
}

std::string TorchScriptText::subtract(const std::string& x, const std::string& y) {
  return let(x + " - " + y);
}

std::string TorchScriptText::multiply(const std::string& x, const std::string& y) {
  return let(x + " * " + y);
}

std::string TorchScriptText::scale(float factor, const std::string& x) {
  return let(concat(factor, " * ", x));
}

std::string TorchScriptText::relu(const std::string& x) { return let("torch.relu(" + x + ")"); }

std::string TorchScriptText::softmax(const std::string& x) {
  return let("torch.softmax(" + x + ", -1)");
}

std::string TorchScriptText::sum(const std::string& x, std::int64_t dim) {
  return let(concat("torch.sum(", x, ", [", dim, "])"));
}

std::string TorchScriptText::sum_columns(const std::string& x) {
  return let("torch.sum(" + x + ", [1], True)");
}

std::string TorchScriptText::matmul(const std::string& x, const std::string& y) {
  return let("torch.bmm(" + x + ", " + y + ")");
}

std::string TorchScriptText::transpose(const std::string& x) {
  return let("torch.transpose(" + x + ", 1, 2)");
}

std::string TorchScriptText::below_diagonal(const std::string& x, std::int64_t n) {
  const std::string places =
      let(concat("torch.tril_indices(", n, ", ", n, ", -1, device=", x, ".device)"));
  // Indexes the flattened matrices: the gradient of an index of two dimensions is slow on GPUs.
  return let(concat("torch.index_select(", x, ".flatten(1), 1, ", places, "[0] * ", n, " + ",
                    places, "[1])"));
}

std::string TorchScriptText::concatenated(const std::vector<std::string>& values,
                                          std::int64_t dim) {
  return let(concat("torch.cat(", listed(values), ", ", dim, ")"));
}

std::string TorchScriptText::slice(const std::string& x,
                                   std::int64_t dim,
                                   std::int64_t first,
                                   std::int64_t count) {
  std::string before;
  for (std::int64_t d = 0; d < dim; ++d) before += ":, ";
  return let(concat(x, "[", before, first, ":", first + count, "]"));
}

std::string TorchScriptText::reshape(const std::string& x, const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes = {"-1"};
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return let(concat(x, ".reshape(", listed(sizes), ")"));
}

std::string TorchScriptText::repeat(const std::string& x, std::int64_t times) {
  return let(concat("torch.unsqueeze(", x, ", 1).expand([-1, ", times, ", -1])"));
}

std::string TorchScriptText::drop(const std::string& x,
                                  std::int64_t width,
                                  double rate,
                                  std::uint64_t stream) {
  if (!is_training() || rate == 0.0) return x;
  dropouts_.push_back({.first = num_factors_, .width = width, .rate = rate, .stream = stream});
  num_factors_ += width;
  return let(concat(x, " * factors[:, ", dropouts_.back().first, ":", num_factors_, "]"));
}

std::string TorchScriptText::call(std::shared_ptr<const ScriptModule> module,
                                  std::int64_t num_outputs) {
  module_ = std::move(module);
  return let("self.module.forward(" + numeric() + ", " + pooled() + ").reshape([-1, " +
             std::to_string(num_outputs) + "])");
}

std::string TorchScriptText::source(const std::string& result) const {
  return concat("def forward(self, numeric: Tensor, pooled: Tensor",
                is_training() ? ", factors: Tensor" : "", ") -> Tensor:\n", body_, "    return ",
                result, "\n");
}

}  // namespace satrap::dense
