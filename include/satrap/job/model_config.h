#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/core/lr_schedule.h"
#include "satrap/kernels/dense_update.h"

namespace satrap::job {

/// One entry of `attend`.
struct AttendConfig {
  std::string sequence, query;  // features
  void visit(ConfigVisitor& v);
};

/// `model` of the configuration. A field that the model does not use must keep its default.
struct ModelConfig {
  static constexpr std::string_view kPlain = "type";

  std::string type = "dlrm";
  std::vector<std::int64_t> bottom = {512, 256, 64};   // dlrm, ffnn: tower of the numeric input
  std::vector<std::int64_t> sparse = {};               // ffnn: tower of the pooled input
  std::vector<std::int64_t> top = {512, 256};          // dlrm, ffnn, din
  std::vector<std::int64_t> hidden = {400, 400, 400};  // wide_deep, deepfm, dcn_v2: deep tower
  std::int64_t cross_layers = 3;                       // dcn_v2
  std::vector<std::int64_t> head =
      {};  // dlrm, ffnn, din, dcn_v2: hidden layers of each label's own
  std::vector<std::int64_t> attention = {80, 40};  // din: of the unit that scores an element
  std::vector<AttendConfig> attend = {};           // din
  std::string activation = "relu";                 // ffnn: none | relu
  bool batch_norm = false;                         // ffnn: in the two towers
  double dropout = 0.0;         // all but logistic, fm, torchscript; in heads too
  std::string path = "";        // torchscript: the module's file
  std::string engine = "auto";  // auto | native | graph

  void visit(ConfigVisitor& v);

  /// Throws Error(kInvalidConfig) if fields contradict each other or the model does not use one.
  void validate() const;
};

/// Whether a row of a table starts with a first-order weight in front of its `dim` factors, which
/// makes it dim + 1 wide.
bool needs_first_order(const std::string& model_type);

/// Whether every id has only one weight: tables of dim 1.
bool needs_dim_one(const std::string& model_type);

/// `dense_optimizer` of the configuration; each type is torch.optim's of that name.
struct DenseOptimizerConfig {
  static constexpr std::string_view kPlain = "type";

  std::string type = "adam";  // sgd | adagrad | adam | adamw
  double lr = 0.001;
  double momentum = 0.0;              // sgd
  double weight_decay = 0.0;          // L2 added to the gradient; decoupled for adamw
  double beta1 = 0.9, beta2 = 0.999;  // adam, adamw
  double eps = 1e-8;                  // adagrad, adam, adamw
  double initial_accumulator = 0.0;   // adagrad
  double clip_norm = 0.0;             // 0: no clipping
  LrSchedule schedule = {};

  void visit(ConfigVisitor& v);

  /// As ModelConfig::validate.
  void validate() const;
};

/// The part that every update needs, for updates that run elsewhere.
DenseOptimizer plain_optimizer(const DenseOptimizerConfig& config);

}  // namespace satrap::job
