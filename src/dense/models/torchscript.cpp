#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "src/dense/libtorch.h"
#include "src/dense/model.h"

namespace satrap::dense {
namespace {

/// Calls run(); what libtorch refuses becomes an error about the module's file.
template <class Run>
auto about(const std::string& path, ErrorCode code, const Run& run) {
  const auto text = [&](const std::exception& error) {
    return concat("model.path: '", path, "': ", error.what());
  };
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const std::range_error& error) {
    throw Error(ErrorCode::kInvalidConfig, text(error));
  } catch (const std::runtime_error& error) {
    throw Error(code, text(error));
  }
}

/// A user's module (ScriptModule); autograd computes its gradients.
class TorchScript : public Model {
 public:
  TorchScript(std::string path, const InputShape& shape, Layout& layout)
      : path_(std::move(path)), num_outputs_(shape.num_outputs()) {
    about(path_, ErrorCode::kInvalidConfig, [&] {
      module_ = libtorch().load(path_, num_outputs_);
      for (ScriptModule::Parameter& p : module_->parameters()) {
        parameters_.push_back(
            layout.add_parameter(std::move(p.name), std::move(p.shape), std::move(p.values)));
      }
      if (parameters_.empty()) throw std::runtime_error("has no parameters to train");
      module_->try_out(shape.num_numeric, shape.pooled_width());
    });
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    about(path_, ErrorCode::kInternal,
          [&] { replica_of(pass).forward(input.numeric, input.pooled, pass.training(), logits); });
  }

  void backward(Pass& pass, const ModelInput&, Matrix dlogits, Matrix dpooled) const override {
    std::vector<Matrix> gradients;
    for (const ParameterId id : parameters_) gradients.push_back(pass.gradient(id));
    about(path_, ErrorCode::kInternal,
          [&] { replica_of(pass).backward(dlogits, gradients, pass.accumulate(), dpooled); });
    for (std::size_t i = parameters_.size(); i-- > 0;) pass.finished(parameters_[i]);
  }

  std::string write(Script& script) const override { return script.call(module_, num_outputs_); }

 private:
  ScriptModule::Replica& replica_of(Pass& pass) const {
    if (!pass.own()) {
      std::vector<ConstMatrix> values;
      for (const ParameterId id : parameters_) values.push_back(pass.value(id));
      pass.own() = std::shared_ptr<ScriptModule::Replica>(module_->replicate(values));
    }
    return *static_cast<ScriptModule::Replica*>(pass.own().get());
  }

  std::string path_;
  std::int64_t num_outputs_;
  std::shared_ptr<const ScriptModule> module_;
  std::vector<ParameterId> parameters_;  // in the order of the module's
};

}  // namespace

std::unique_ptr<Model> make_torchscript(const job::ModelConfig& config,
                                        const InputShape& shape,
                                        Layout& layout) {
  return std::make_unique<TorchScript>(config.path, shape, layout);
}

}  // namespace satrap::dense
