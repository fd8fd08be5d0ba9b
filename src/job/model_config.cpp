#include "satrap/job/model_config.h"

#include <algorithm>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

// A field of `section` that only some types use must have its default for all others. Only a change
// can be detected: a resolved config writes every field, and must load again.
void check_used(const char* section,
                const std::string& type,
                const char* field,
                bool changed,
                const std::vector<std::string>& users) {
  if (!changed || std::find(users.begin(), users.end(), type) != users.end()) return;
  std::string list;
  for (const std::string& user : users) list += (list.empty() ? "" : ", ") + user;
  throw Error(ErrorCode::kInvalidConfig, concat(section, ".", field, " is not used by type '", type,
                                                "' (only by ", list, "): leave it out"));
}

}  // namespace

bool needs_first_order(const std::string& model_type) {
  return model_type == "fm" || model_type == "wide_deep" || model_type == "deepfm";
}
bool needs_dim_one(const std::string& model_type) { return model_type == "logistic"; }

void AttendConfig::visit(ConfigVisitor& v) {
  v.field("sequence", sequence,
          "Feature with pooling: sequence, whose elements are scored and summed.",
          {.required = true});
  v.field("query", query,
          "Feature that scores them, one vector as wide as an element: the candidate item. It "
          "should share the sequence's table.",
          {.required = true});
}

void ModelConfig::visit(ConfigVisitor& v) {
  v.field(
      "type", type,
      "Dense network. logistic: sum of one weight per id plus a linear function of the numbers. "
      "fm: factorization machine. wide_deep: the sum and linear function plus an MLP. "
      "deepfm: factorization machine plus an MLP. dcn_v2: cross layers in parallel with an MLP. "
      "dlrm: dot products of embeddings and a bottom MLP, then a top MLP. ffnn: PERSIA's tower. "
      "din: Deep Interest Network, the candidate item attends to a sequence, then an MLP. "
      "torchscript: your own module, saved by torch.jit.save.",
      {.one_of = {"logistic", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "ffnn", "din",
                  "torchscript"}});
  v.field(
      "bottom", bottom,
      "dlrm, ffnn: widths of the layers over the numeric input. dlrm appends a layer as wide as "
      "an embedding unless the last one is. Without numeric input there is no bottom.",
      {.min = 1});
  v.field("sparse", sparse, "ffnn: widths of the layers over the pooled embeddings.", {.min = 1});
  v.field(
      "top", top,
      "dlrm, ffnn, din: widths of the layers over all joined inputs; a last layer of 1 is added.",
      {.min = 1});
  v.field("hidden", hidden, "wide_deep, deepfm, dcn_v2: widths of the deep tower.", {.min = 1});
  v.field("cross_layers", cross_layers, "dcn_v2: number of cross layers.", {.min = 0});
  v.field(
      "head", head,
      "dlrm, ffnn, din, dcn_v2: widths of each label's own hidden layers, over the output of `top` "
      "(dcn_v2: of the cross layers and the deep tower); a last layer of 1 is added.",
      {.min = 1});
  v.field("attention", attention,
          "din: widths of the layers that score an element k for a query q from [q, k, q - k, "
          "q * k]; a last layer of 1 is added. Scores are not normalised (no softmax).",
          {.min = 1});
  v.list("attend", attend,
         "din: which feature attends to which sequence. `top` gets each sequence as the sum of its "
         "elements, weighted by score, and all other inputs unchanged.");
  v.field("activation", activation, "ffnn: after every layer but the last.",
          {.one_of = {"none", "relu"}});
  v.field(
      "batch_norm", batch_norm,
      "ffnn: batch normalisation after each linear layer of `bottom` and `sparse`. The examples of "
      "a batch are then computed together.");
  v.field(
      "dropout", dropout,
      "Probability that an output of a hidden layer is zeroed in training, after each ReLU that is "
      "followed by another layer of the same tower. `top` and a label's `head` are one tower, up "
      "to the logit: labels share the draws in `top`, and each head has its own. din: only in "
      "`top` and `head`.",
      {.min = 0.0, .max = 0.99});
  v.field(
      "path", path,
      "torchscript: file of the module. Its forward(numeric [n, numeric inputs], pooled [n, "
      "embedding columns]) returns the logits, [n] or [n, 1], for several labels [n, labels]. "
      "Training starts from the values of its parameters; it runs in evaluation mode (no "
      "dropout, buffers do not change). Needed again to resume or use a checkpoint. The file is "
      "code that satrap runs: load only one from whom you trust.");
  v.field(
      "engine", engine,
      "What computes the network. native: satrap's own forward and backward passes, on the CPU. "
      "graph: the same formulas by libtorch under autograd, equal to rounding; on the GPU with "
      "device cuda, where auto takes it but for torchscript, and slower on a CPU. torchscript "
      "is always computed by libtorch; with graph its module must make its tensors where its "
      "inputs are.",
      {.one_of = {"auto", "native", "graph"}});
}

void ModelConfig::validate() const {
  const ModelConfig defaults;
  const auto check = [&](const char* field, bool changed, const std::vector<std::string>& users) {
    check_used("model", type, field, changed, users);
  };
  check("bottom", bottom != defaults.bottom, {"dlrm", "ffnn"});
  check("sparse", sparse != defaults.sparse, {"ffnn"});
  check("top", top != defaults.top, {"dlrm", "ffnn", "din"});
  check("hidden", hidden != defaults.hidden, {"wide_deep", "deepfm", "dcn_v2"});
  check("cross_layers", cross_layers != defaults.cross_layers, {"dcn_v2"});
  check("head", head != defaults.head, {"dcn_v2", "dlrm", "ffnn", "din"});
  check("attention", attention != defaults.attention, {"din"});
  check("attend", !attend.empty(), {"din"});
  check("activation", activation != defaults.activation, {"ffnn"});
  check("batch_norm", batch_norm != defaults.batch_norm, {"ffnn"});
  check("dropout", dropout != defaults.dropout,
        {"wide_deep", "deepfm", "dcn_v2", "dlrm", "ffnn", "din"});
  if (type == "din" && attend.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "model.type: din needs model.attend, such as [{sequence: history, query: item}]");
  }
  check("path", path != defaults.path, {"torchscript"});
  if (type == "torchscript" && path.empty()) {
    throw Error(ErrorCode::kInvalidConfig, "model.path: is not set; model 'torchscript' needs it");
  }
  if (dropout > 0.0 && activation == "none") {
    throw Error(ErrorCode::kInvalidConfig,
                "model.dropout follows a ReLU: model.activation must not be none");
  }
}

void DenseOptimizerConfig::visit(ConfigVisitor& v) {
  v.field("type", type, "Optimizer of the dense network; formulas as torch.optim's.",
          {.one_of = {"sgd", "adagrad", "adam", "adamw"}});
  v.field("lr", lr, "Learning rate, before the schedule.", {.min = 0.0, .min_exclusive = true});
  v.field("momentum", momentum, "sgd: momentum (no dampening, not Nesterov's).",
          {.min = 0.0, .max = 1.0});
  v.field(
      "weight_decay", weight_decay,
      "L2 penalty added to the gradient; adamw: decoupled, lr * weight_decay of every parameter "
      "per step.",
      {.min = 0.0});
  v.field("beta1", beta1, "adam, adamw: decay of the mean of gradients.", {.min = 0.0, .max = 1.0});
  v.field("beta2", beta2, "adam, adamw: decay of the mean of squares.", {.min = 0.0, .max = 1.0});
  v.field("eps", eps, "adagrad, adam, adamw: added to the root in the denominator.",
          {.min = 0.0, .min_exclusive = true});
  v.field("initial_accumulator", initial_accumulator,
          "adagrad: initial value of the sum of squares.", {.min = 0.0});
  v.field("clip_norm", clip_norm,
          "Largest L2 norm of the gradient of all dense parameters together; a larger gradient is "
          "scaled down. 0: no clipping.",
          {.min = 0.0});
  v.section("schedule", schedule, "How the learning rate changes over the steps.");
}

void DenseOptimizerConfig::validate() const {
  const DenseOptimizerConfig defaults;
  const auto check = [&](const char* field, bool changed, const std::vector<std::string>& users) {
    check_used("dense_optimizer", type, field, changed, users);
  };
  check("momentum", momentum != defaults.momentum, {"sgd"});
  check("beta1", beta1 != defaults.beta1, {"adam", "adamw"});
  check("beta2", beta2 != defaults.beta2, {"adam", "adamw"});
  check("eps", eps != defaults.eps, {"adagrad", "adam", "adamw"});
  check("initial_accumulator", initial_accumulator != defaults.initial_accumulator, {"adagrad"});
  if (momentum >= 1.0 || beta1 >= 1.0 || beta2 >= 1.0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("dense_optimizer: momentum, beta1 and beta2 must be below 1, got ", momentum,
                       ", ", beta1, ", ", beta2));
  }
  schedule.validate("dense_optimizer.schedule");
}

DenseOptimizer plain_optimizer(const DenseOptimizerConfig& config) {
  DenseOptimizer optimizer;
  using enum DenseOptimizerType;
  optimizer.type = config.type == "sgd"       ? kSgd
                   : config.type == "adagrad" ? kAdagrad
                   : config.type == "adamw"   ? kAdamW
                                              : kAdam;
  optimizer.momentum = config.momentum;
  optimizer.weight_decay = config.weight_decay;
  optimizer.beta1 = config.beta1;
  optimizer.beta2 = config.beta2;
  optimizer.eps = config.eps;
  optimizer.initial_accumulator = config.initial_accumulator;
  return optimizer;
}

}  // namespace satrap::job
