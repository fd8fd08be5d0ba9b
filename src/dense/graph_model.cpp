#include "src/dense/graph_model.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "src/dense/ops.h"
#include "src/dense/torchscript.h"

namespace satrap::dense {
namespace {

/// A model's graph in one form.
struct Graph {
  std::shared_ptr<const ScriptModule> module;
  std::vector<Script::Dropout> dropouts;
  std::int64_t num_factors = 0;
};

class GraphModel : public Model {
 public:
  GraphModel(std::unique_ptr<Model> model, Layout& layout, std::int64_t num_labels)
      : model_(std::move(model)), layout_(layout) {
    training_ = compile(Script::Form::kTraining, num_labels);
    evaluation_ = compile(Script::Form::kEvaluation, num_labels);
    factors_ = layout.add_scratch(training_.num_factors);
  }

  void forward(Pass& pass, const ModelInput& input, Matrix logits) const override {
    Replicas& replicas = replicas_of(pass);
    if (!pass.training()) {
      return about(
          [&] { replicas.evaluation->forward(input.numeric, input.pooled, false, logits); });
    }
    // The graph updates the statistics in place.
    for (BufferId b = 0; b < layout_.buffers().size(); ++b) {
      std::copy_n(pass.buffer(b), layout_.buffers()[b].size, pass.new_buffer(b));
    }
    const Matrix factors = pass.scratch(factors_);
    for (const Script::Dropout& d : training_.dropouts) {
      const Matrix of_layer = factors.columns(d.first, d.width);
      for (std::int64_t r = 0; r < of_layer.rows; ++r) std::fill_n(of_layer.row(r), d.width, 1.0F);
      dropout(of_layer, d.rate, hash64(pass.dropout_seed(), d.stream), pass.first_example());
    }
    const ConstMatrix third = factors;
    about([&] { replicas.training->forward(input.numeric, input.pooled, true, logits, &third); });
  }

  void backward(Pass& pass, const ModelInput&, Matrix dlogits, Matrix dpooled) const override {
    std::vector<Matrix> gradients;
    for (ParameterId p = 0; p < layout_.parameters().size(); ++p) {
      gradients.push_back(pass.gradient(p));
    }
    about([&] {
      replicas_of(pass).training->backward(dlogits, gradients, pass.accumulate(), dpooled);
    });
    for (ParameterId p = gradients.size(); p-- > 0;) pass.finished(p);
  }

  std::string write(Script& script) const override { return model_->write(script); }
  bool needs_whole_batch() const override { return model_->needs_whole_batch(); }

 private:
  struct Replicas {
    std::unique_ptr<ScriptModule::Replica> training, evaluation;
  };

  template <class Run>
  static void about(const Run& run) {
    try {
      run();
    } catch (const std::runtime_error& error) {  // the graph is ours
      throw Error(ErrorCode::kInternal, concat("model.engine: graph: ", error.what()));
    }
  }

  Graph compile(Script::Form form, std::int64_t num_labels) const {
    Script script(layout_, form);
    const std::string logits = model_->write(script);
    const std::vector<float> parameters(static_cast<std::size_t>(layout_.num_parameters()));
    const std::vector<float> buffers(static_cast<std::size_t>(layout_.num_buffer_values()));
    return {.module = compile_script(script, logits, layout_, parameters, buffers, num_labels),
            .dropouts = script.dropouts(),
            .num_factors = script.num_factors()};
  }

  Replicas& replicas_of(Pass& pass) const {
    if (!pass.own()) {
      std::vector<ConstMatrix> values;
      for (ParameterId p = 0; p < layout_.parameters().size(); ++p) values.push_back(pass.value(p));
      std::vector<float*> now, next;
      for (BufferId b = 0; b < layout_.buffers().size(); ++b) {
        now.push_back(const_cast<float*>(pass.buffer(b)));  // only read
        next.push_back(pass.new_buffer(b));
      }
      pass.own() = std::make_shared<Replicas>(
          Replicas{.training = training_.module->replicate(values, next),
                   .evaluation = evaluation_.module->replicate(values, now)});
    }
    return *static_cast<Replicas*>(pass.own().get());
  }

  const std::unique_ptr<Model> model_;
  const Layout& layout_;
  Graph training_, evaluation_;
  ScratchId factors_ = 0;
};

}  // namespace

std::unique_ptr<Model> make_graph_model(std::unique_ptr<Model> model,
                                        Layout& layout,
                                        std::int64_t num_labels) {
  return std::make_unique<GraphModel>(std::move(model), layout, num_labels);
}

}  // namespace satrap::dense
