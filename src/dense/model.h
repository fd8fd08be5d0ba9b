#pragma once

#include <memory>

#include "satrap/dense/dense_network.h"
#include "satrap/job/model_config.h"
#include "src/dense/matrix.h"
#include "src/dense/parameters.h"
#include "src/dense/pass.h"
#include "src/dense/script.h"

namespace satrap::dense {

/// Examples of a batch, as the input of a model.
struct ModelInput {
  ConstMatrix numeric;  // [rows, num_numeric]
  ConstMatrix pooled;   // [rows, pooled_width]
};

/// The formula of a network, forward and backward. It has no state; the numbers are in the Pass.
class Model {
 public:
  virtual ~Model() = default;

  /// `logits`: [rows, num_outputs].
  virtual void forward(Pass& pass, const ModelInput& input, Matrix logits) const = 0;

  /// After forward on the same pass and input. Gradients of parameters go to the pass. `dlogits`
  /// may be changed.
  virtual void backward(Pass& pass,
                        const ModelInput& input,
                        Matrix dlogits,
                        Matrix dpooled) const = 0;

  /// The forward pass in evaluation mode, for export; returns the name of the logits
  /// [rows, num_outputs].
  virtual std::string write(Script& script) const = 0;

  /// Whether the examples of a batch depend on each other in training (batch normalisation).
  virtual bool needs_whole_batch() const { return false; }
};

/// Throws Error(kInvalidConfig) if the model cannot take the shape. Adds the model's parts to
/// `layout`.
std::unique_ptr<Model> make_model(const job::ModelConfig& config,
                                  const InputShape& shape,
                                  Layout& layout);

std::unique_ptr<Model> make_logistic(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_fm(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_wide_deep(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_deepfm(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_dcn_v2(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_dlrm(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_ffnn(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_din(const job::ModelConfig&, const InputShape&, Layout&);
std::unique_ptr<Model> make_torchscript(const job::ModelConfig&, const InputShape&, Layout&);

/// The common width of all fields; throws Error(kInvalidConfig) naming the first one that differs.
std::int64_t equal_field_width(job::ModelType type, const InputShape& shape);

/// {...widths, last}
std::vector<std::int64_t> append(std::vector<std::int64_t> widths, std::int64_t last);

}  // namespace satrap::dense
