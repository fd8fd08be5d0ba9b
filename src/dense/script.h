#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/dense/libtorch.h"
#include "src/dense/parameters.h"

namespace satrap::dense {

/// The forward pass of a model, written as TorchScript: a method forward(numeric, pooled) of a
/// module that has the layout's parameters and buffers. Layers and models append assignments and
/// refer to values by the names that let() returned.
class Script {
 public:
  /// In training form batch normalisation takes the statistics of the batch and updates the running
  /// ones in place, and the method has a third argument: the factors of all dropouts side by side,
  /// [rows, num_factors()].
  enum class Form : std::uint8_t { kEvaluation, kTraining };

  /// `layout` must outlive it.
  explicit Script(const Layout& layout, Form form = Form::kEvaluation)
      : layout_(layout), form_(form) {}

  bool is_training() const { return form_ == Form::kTraining; }

  /// The inputs: [rows, num_numeric] and [rows, pooled_width].
  std::string numeric() const { return "numeric"; }
  std::string pooled() const { return pooled_; }
  /// What stands for it from now on.
  void set_pooled(std::string name) { pooled_ = std::move(name); }

  /// A parameter or a buffer, in an expression.
  std::string parameter(ParameterId id) const;
  std::string buffer(BufferId id) const;

  /// Gives the value of a Python expression a name, and returns it.
  std::string let(const std::string& expression);

  /// A layer's output after its dropout, as ops.h computes it from a step's seed and `stream`; in
  /// evaluation form the output.
  struct Dropout {
    std::int64_t first, width;  // of its factors
    double rate;
    std::uint64_t stream;
  };
  std::string drop(const std::string& x, std::int64_t width, double rate, std::uint64_t stream);
  const std::vector<Dropout>& dropouts() const { return dropouts_; }
  std::int64_t num_factors() const { return num_factors_; }

  /// The result of a module's own forward(numeric, pooled), as one column per label. The module
  /// becomes part of the exported one and uses the layout's parameters, in their order.
  std::string call(std::shared_ptr<const ScriptModule> module, std::int64_t num_labels);
  const std::shared_ptr<const ScriptModule>& module() const { return module_; }

  /// The whole method; it returns `result`.
  std::string source(const std::string& result) const;

 private:
  const Layout& layout_;
  const Form form_;
  std::vector<Dropout> dropouts_;
  std::int64_t num_factors_ = 0;
  std::string body_, pooled_ = "pooled";
  int num_values_ = 0;
  std::shared_ptr<const ScriptModule> module_;
};

/// A parameter's name as that of a module's attribute: "bottom.0.weight" is bottom_0_weight.
std::string attribute_name(std::string name);

}  // namespace satrap::dense
