#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/core/lr_schedule.h"
#include "satrap/kernels/dense_update.h"

namespace satrap::job {

enum class ModelType {
  kLogistic,
  kFm,
  kWideDeep,
  kDeepFm,
  kDcnV2,
  kDlrm,
  kFfnn,
  kDin,
  kTorchScript,
  kPython
};
inline constexpr Choice<ModelType> kModelTypes[] = {{"logistic", ModelType::kLogistic},
                                                    {"fm", ModelType::kFm},
                                                    {"wide_deep", ModelType::kWideDeep},
                                                    {"deepfm", ModelType::kDeepFm},
                                                    {"dcn_v2", ModelType::kDcnV2},
                                                    {"dlrm", ModelType::kDlrm},
                                                    {"ffnn", ModelType::kFfnn},
                                                    {"din", ModelType::kDin},
                                                    {"torchscript", ModelType::kTorchScript},
                                                    {"python", ModelType::kPython}};

enum class Activation { kNone, kRelu };
inline constexpr Choice<Activation> kActivations[] = {{"none", Activation::kNone},
                                                      {"relu", Activation::kRelu}};

/// The code that computes the dense network: satrap's own passes, or libtorch.
enum class Engine { kAuto, kNative, kGraph };
inline constexpr Choice<Engine> kEngines[] = {{"auto", Engine::kAuto},
                                              {"native", Engine::kNative},
                                              {"graph", Engine::kGraph}};

/// What the network learns to make small. kAuto: each label's follows from what the label is.
enum class Loss { kAuto, kBce, kMse, kSoftmax };
inline constexpr Choice<Loss> kLosses[] = {{"auto", Loss::kAuto},
                                           {"bce", Loss::kBce},
                                           {"mse", Loss::kMse},
                                           {"softmax", Loss::kSoftmax}};

inline constexpr Choice<DenseOptimizerType> kDenseOptimizers[] = {
    {"sgd", DenseOptimizerType::kSgd},
    {"adagrad", DenseOptimizerType::kAdagrad},
    {"adam", DenseOptimizerType::kAdam},
    {"adamw", DenseOptimizerType::kAdamW}};

/// One entry of `attend`.
struct AttendConfig {
  std::string sequence, query;  // features
  void visit(ConfigVisitor& v);
};

/// What lies between the vector that the labels share and their heads: nothing, or experts.
enum class HeadsType { kSharedBottom, kMmoe, kPle };
inline constexpr Choice<HeadsType> kHeadsTypes[] = {{"shared_bottom", HeadsType::kSharedBottom},
                                                    {"mmoe", HeadsType::kMmoe},
                                                    {"ple", HeadsType::kPle}};

/// `model.heads` of the configuration. A field that the type does not use must keep its default.
struct HeadsConfig {
  static constexpr std::string_view kPlain = "type";

  HeadsType type = HeadsType::kSharedBottom;
  std::int64_t experts = 4;                  // mmoe, ple: that the labels share, in each level
  std::vector<std::int64_t> layers = {128};  // mmoe, ple: widths of each expert
  std::int64_t experts_per_label = 1;        // ple: of each label's own, in each level
  std::int64_t levels = 1;                   // ple

  bool has_experts() const { return type != HeadsType::kSharedBottom; }
  /// In all levels, if there are so many labels; 0 without experts.
  std::int64_t num_experts(std::int64_t num_labels) const;

  void visit(ConfigVisitor& v);

  /// As ModelConfig::validate.
  void validate() const;

  friend bool operator==(const HeadsConfig&, const HeadsConfig&) = default;
};

/// `model` of the configuration. A field that the model does not use must keep its default.
struct ModelConfig {
  static constexpr std::string_view kPlain = "type";

  ModelType type = ModelType::kDlrm;
  std::vector<std::int64_t> bottom = {512, 256, 64};   // dlrm, ffnn: tower of the numeric input
  std::vector<std::int64_t> sparse = {};               // ffnn: tower of the pooled input
  std::vector<std::int64_t> top = {512, 256};          // dlrm, ffnn, din
  std::vector<std::int64_t> hidden = {400, 400, 400};  // wide_deep, deepfm, dcn_v2: deep tower
  std::int64_t cross_layers = 3;                       // dcn_v2
  std::vector<std::int64_t> head =
      {};                             // dlrm, ffnn, din, dcn_v2: hidden layers of each label's own
  HeadsConfig heads = HeadsConfig();  // dlrm, ffnn, din, dcn_v2
  std::vector<std::int64_t> attention = {80, 40};  // din: of the unit that scores an element
  std::vector<AttendConfig> attend = {};           // din
  Activation activation = Activation::kRelu;       // ffnn
  bool batch_norm = false;                         // ffnn: in the two towers
  double dropout = 0.0;   // all but logistic, fm, torchscript; in heads too
  std::string path = "";  // torchscript: the module's file; python: file.py:Class
  Engine engine = Engine::kAuto;
  Loss loss = Loss::kAuto;

  void visit(ConfigVisitor& v);

  /// Throws Error(kInvalidConfig) if fields contradict each other or the model does not use one.
  void validate() const;

  /// Outputs of the widest layer that the configuration names; 0: it names none.
  std::int64_t widest_layer() const;
};

/// Whether a row of a table starts with a first-order weight in front of its `dim` factors, which
/// makes it dim + 1 wide.
bool needs_first_order(ModelType model_type);

/// Whether every id has only one weight: tables of dim 1.
bool needs_dim_one(ModelType model_type);

/// `dense_optimizer` of the configuration; each type is torch.optim's of that name.
struct DenseOptimizerConfig {
  static constexpr std::string_view kPlain = "type";

  DenseOptimizerType type = DenseOptimizerType::kAdam;
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
