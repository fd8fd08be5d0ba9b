#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/dense/script.h"

namespace satrap::dense {

/// A script as TorchScript: a method forward(numeric, pooled) of a module that has the layout's
/// parameters and buffers. An operation is an assignment.
class TorchScriptText : public Script {
 public:
  /// In training form batch normalisation takes the statistics of the batch and updates the running
  /// ones in place, and the method has a third argument: the factors of all dropouts side by side,
  /// [rows, num_factors()].
  enum class Form : std::uint8_t { kEvaluation, kTraining };

  /// `layout` must outlive it.
  explicit TorchScriptText(const Layout& layout, Form form = Form::kEvaluation)
      : layout_(layout), form_(form) {}

  /// Gives the value of a Python expression a name, and returns it.
  std::string let(const std::string& expression);

  std::string linear(const std::string& x,
                     ParameterId weight,
                     std::optional<ParameterId> bias) override;
  std::string batch_norm(const std::string& x, const BatchNormNumbers& numbers) override;
  std::string add(const std::string& x, const std::string& y) override;
  std::string subtract(const std::string& x, const std::string& y) override;
  std::string multiply(const std::string& x, const std::string& y) override;
  std::string scale(float factor, const std::string& x) override;
  std::string relu(const std::string& x) override;
  std::string softmax(const std::string& x) override;
  std::string sum(const std::string& x, std::int64_t dim) override;
  std::string sum_columns(const std::string& x) override;
  std::string matmul(const std::string& x, const std::string& y) override;
  std::string transpose(const std::string& x) override;
  std::string below_diagonal(const std::string& x, std::int64_t n) override;
  std::string slice(const std::string& x,
                    std::int64_t dim,
                    std::int64_t first,
                    std::int64_t count) override;
  std::string reshape(const std::string& x, const std::vector<std::int64_t>& shape) override;
  std::string repeat(const std::string& x, std::int64_t times) override;
  std::string drop(const std::string& x,
                   std::int64_t width,
                   double rate,
                   std::uint64_t stream) override;
  /// The module becomes part of the written one.
  std::string call(std::shared_ptr<const ScriptModule> module, std::int64_t num_outputs) override;

  struct Dropout {
    std::int64_t first, width;  // of its factors
    double rate;
    std::uint64_t stream;
  };
  const std::vector<Dropout>& dropouts() const { return dropouts_; }
  std::int64_t num_factors() const { return num_factors_; }
  const std::shared_ptr<const ScriptModule>& module() const { return module_; }

  /// The whole method; it returns `result`.
  std::string source(const std::string& result) const;

 private:
  bool is_training() const { return form_ == Form::kTraining; }
  std::string parameter(ParameterId id) const;
  std::string buffer(BufferId id) const;
  std::string concatenated(const std::vector<std::string>& values, std::int64_t dim) override;

  const Layout& layout_;
  const Form form_;
  std::vector<Dropout> dropouts_;
  std::int64_t num_factors_ = 0;
  std::string body_;
  int num_values_ = 0;
  std::shared_ptr<const ScriptModule> module_;
};

/// A parameter's name as that of a module's attribute: "bottom.0.weight" is bottom_0_weight.
std::string attribute_name(std::string name);

}  // namespace satrap::dense
