#include "satrap/job/model_config.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

// A field of `section` that only some types use must have its default for all others. Only a change
// can be detected: a resolved config writes every field, and must load again.
template <class Enum>
void check_used(const char* section,
                Enum type,
                Choices<Enum> types,
                const char* field,
                bool changed,
                std::initializer_list<Enum> users) {
  if (!changed || std::ranges::find(users, type) != users.end()) return;
  std::string list;
  for (const Enum user : users) list += concat(list.empty() ? "" : ", ", word_of(user, types));
  throw Error(ErrorCode::kInvalidConfig,
              concat(section, ".", field, " is not used by type '", word_of(type, types),
                     "' (only by ", list, "): leave it out"));
}

/// "folder/net.py:Net".
void check_python_path(const std::string& path) {
  const std::size_t colon = path.rfind(':');
  const std::string name = colon == std::string::npos ? "" : path.substr(colon + 1);
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const bool is_name = !name.empty() && std::ranges::all_of(name, is_of_name);
  if (is_name && colon > 0 && path[colon - 1] != '/') return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("model.path: '", path,
                     "' does not name a class or function in its file, which model 'python' needs; "
                     "write the file, a colon and the name, such as net.py:Net"));
}

}  // namespace

bool needs_first_order(ModelType model_type) {
  using enum ModelType;
  return model_type == kFm || model_type == kWideDeep || model_type == kDeepFm;
}
bool needs_dim_one(ModelType model_type) { return model_type == ModelType::kLogistic; }

void AttendConfig::visit(ConfigVisitor& v) {
  v.field("sequence", sequence,
          "Feature with pooling: sequence, whose elements are scored and summed.",
          {.required = true});
  v.field("query", query,
          "Feature that scores them, one vector as wide as an element: the candidate item. It "
          "should share the sequence's table.",
          {.required = true});
}

std::int64_t HeadsConfig::num_experts(std::int64_t num_labels) const {
  if (!has_experts()) return 0;
  return levels * (experts + (type == HeadsType::kPle ? num_labels * experts_per_label : 0));
}

void HeadsConfig::visit(ConfigVisitor& v) {
  v.choice(
      "type", type, kHeadsTypes,
      "shared_bottom: every head reads the whole vector. mmoe: multi-gate mixture of experts (Ma "
      "et al. 2018): experts, MLPs of the vector, which all labels share; a label's head reads "
      "their sum, weighted by a gate of its own, the softmax of a linear layer over the vector. "
      "ple: progressive layered extraction (Tang et al. 2020): besides shared experts each label "
      "has its own, and its gate weighs both.");
  v.field("experts", experts, "mmoe, ple: number of experts that the labels share.",
          {.min = 1, .max = 1024});
  v.field("layers", layers, "mmoe, ple: widths of the layers of each expert.", {.min = 1});
  v.field("experts_per_label", experts_per_label, "ple: number of each label's own experts.",
          {.min = 1, .max = 1024});
  v.field(
      "levels", levels,
      "ple: number of levels, each with so many experts and gates of its own. A label's experts "
      "and "
      "gate read what its gate in the level before gave; shared experts read what a gate over all "
      "experts there gave.",
      {.min = 1, .max = 16});
}

void HeadsConfig::validate() const {
  using enum HeadsType;
  const HeadsConfig defaults;
  const auto check = [&](const char* field, bool changed, std::initializer_list<HeadsType> users) {
    check_used("model.heads", type, kHeadsTypes, field, changed, users);
  };
  check("experts", experts != defaults.experts, {kMmoe, kPle});
  check("layers", layers != defaults.layers, {kMmoe, kPle});
  check("experts_per_label", experts_per_label != defaults.experts_per_label, {kPle});
  check("levels", levels != defaults.levels, {kPle});
  if (type == kMmoe && experts < 2) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model.heads.experts: a gate of mmoe needs two experts to weigh, got ",
                       experts, "; write two or more, or leave model.heads out"));
  }
  if (layers.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "model.heads.layers: an expert needs a layer, such as [128], got []");
  }
}

void ModelConfig::visit(ConfigVisitor& v) {
  v.choice(
      "type", type, kModelTypes,
      "Dense network. logistic: sum of one weight per id plus a linear function of the numbers. "
      "fm: factorization machine. wide_deep: the sum and linear function plus an MLP. deepfm: "
      "factorization machine plus an MLP. dcn_v2: cross layers in parallel with an MLP. dlrm: dot "
      "products of embeddings and a bottom MLP, then a top MLP. ffnn: PERSIA's tower. din: Deep "
      "Interest Network, the candidate item attends to a sequence, then an MLP. torchscript: your "
      "own module, saved by torch.jit.save. python: your own module in Python, which `python -m "
      "satrap train` trains, or a program with satrap.Trainer (docs/python.md).");
  v.field(
      "bottom", bottom,
      "dlrm, ffnn: widths of the layers over the numeric input. dlrm appends a layer as wide as an "
      "embedding unless the last one is. Without numeric input there is no bottom.",
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
  v.section("heads", heads,
            "dlrm, ffnn, din, dcn_v2, of several labels: how the heads read the vector that the "
            "labels share, the output of `top` (dcn_v2: as for `head`).");
  v.field("attention", attention,
          "din: widths of the layers that score an element k for a query q from [q, k, q - k, q * "
          "k]; a last layer of 1 is added. Scores are not normalised (no softmax).",
          {.min = 1});
  v.list("attend", attend,
         "din: which feature attends to which sequence. `top` gets each sequence as the sum of its "
         "elements, weighted by score, and all other inputs unchanged.");
  v.choice("activation", activation, kActivations, "ffnn: after every layer but the last.");
  v.field(
      "batch_norm", batch_norm,
      "ffnn: batch normalisation after each linear layer of `bottom` and `sparse`. The examples of "
      "a batch are then computed together.");
  v.field(
      "dropout", dropout,
      "Probability that an output of a hidden layer is zeroed in training, after each ReLU that is "
      "followed by another layer of the same tower. `top` and a label's `head` are one tower, up "
      "to the logit: labels share the draws in `top`, and each head and each expert (`heads`) has "
      "its own. din: only in `top`, `head` and `heads`.",
      {.min = 0.0, .max = 0.99, .resume = kOtherTraining});
  v.field(
      "path", path,
      "python: file and name of a class or function, such as net.py:Net. Net(job) returns a "
      "torch.nn.Module, which makes logits of a batch. torchscript: file of the module. Its "
      "forward(numeric [n, numeric inputs], pooled [n, "
      "embedding columns]) returns the logits, [n] or [n, 1], for several labels [n, labels]. "
      "Training starts from the values of its parameters; it runs in evaluation mode (no dropout, "
      "buffers do not change). Needed again to resume or use a checkpoint. The file is code that "
      "satrap runs: load only one from whom you trust.",
      {.resume = kOtherTraining});
  v.choice(
      "engine", engine, kEngines,
      "What computes the network. native: satrap's own forward and backward passes, on the CPU. "
      "graph: the same formulas by libtorch under autograd, equal to rounding; on the GPU with "
      "device cuda, where auto takes it but for torchscript, and slower on a CPU. torchscript is "
      "always computed by libtorch; with graph its module must make its tensors where its inputs "
      "are.",
      {.resume = kOtherTraining});
  v.choice(
      "loss", loss, kLosses,
      "What is made small. bce: binary cross-entropy, of labels of 0 and 1, whose probability is "
      "predicted. mse: mean squared error, of numbers or of 0 and 1, whose value is predicted. "
      "softmax: cross-entropy over the `classes` of a label, of which each has a probability. "
      "auto: "
      "what each label is says it, also where some are numbers and some 0 and 1.");
}

void ModelConfig::validate() const {
  using enum ModelType;
  const ModelConfig defaults;
  const auto check = [&](const char* field, bool changed, std::initializer_list<ModelType> users) {
    check_used("model", type, kModelTypes, field, changed, users);
  };
  check("bottom", bottom != defaults.bottom, {kDlrm, kFfnn});
  check("sparse", sparse != defaults.sparse, {kFfnn});
  check("top", top != defaults.top, {kDlrm, kFfnn, kDin});
  check("hidden", hidden != defaults.hidden, {kWideDeep, kDeepFm, kDcnV2});
  check("cross_layers", cross_layers != defaults.cross_layers, {kDcnV2});
  check("head", head != defaults.head, {kDcnV2, kDlrm, kFfnn, kDin});
  check("heads", heads != defaults.heads, {kDcnV2, kDlrm, kFfnn, kDin});
  heads.validate();
  check("attention", attention != defaults.attention, {kDin});
  check("attend", !attend.empty(), {kDin});
  check("activation", activation != defaults.activation, {kFfnn});
  check("batch_norm", batch_norm != defaults.batch_norm, {kFfnn});
  check("dropout", dropout != defaults.dropout, {kWideDeep, kDeepFm, kDcnV2, kDlrm, kFfnn, kDin});
  if (type == kDin && attend.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                "model.type: din needs model.attend, such as [{sequence: history, query: item}]");
  }
  check("path", path != defaults.path, {kTorchScript, kPython});
  if (type == kPython && !path.empty()) check_python_path(path);
  if (type == kPython && engine != defaults.engine) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("model.engine: the program computes the network of type 'python', got ",
                       word_of(engine, kEngines), "; leave it out"));
  }
  if (type == kTorchScript && path.empty()) {
    throw Error(ErrorCode::kInvalidConfig, "model.path: is not set; model 'torchscript' needs it");
  }
  if (dropout > 0.0 && activation == Activation::kNone) {
    throw Error(ErrorCode::kInvalidConfig,
                "model.dropout follows a ReLU: model.activation must not be none");
  }
}

std::int64_t ModelConfig::widest_layer() const {
  std::int64_t widest = 0;
  const auto add = [&](const std::vector<std::int64_t>& layers) {
    for (const std::int64_t width : layers) widest = std::max(widest, width);
  };
  using enum ModelType;
  const bool is_deep = type == kWideDeep || type == kDeepFm || type == kDcnV2;
  if (type == kDlrm || type == kFfnn) add(bottom);
  if (type == kDlrm || type == kFfnn || type == kDin) add(top);
  if (type == kDin) add(attention);
  if (is_deep) add(hidden);
  add(sparse);  // what other models do not use is empty
  add(head);
  if (heads.has_experts()) add(heads.layers);
  return widest;
}

void DenseOptimizerConfig::visit(ConfigVisitor& v) {
  v.choice("type", type, kDenseOptimizers,
           "Optimizer of the dense network; formulas as torch.optim's.",
           {.resume = impossible("the checkpoint holds the state of that optimizer")});
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
  using enum DenseOptimizerType;
  const DenseOptimizerConfig defaults;
  const auto check = [&](const char* field, bool changed,
                         std::initializer_list<DenseOptimizerType> users) {
    check_used("dense_optimizer", type, kDenseOptimizers, field, changed, users);
  };
  check("momentum", momentum != defaults.momentum, {kSgd});
  check("beta1", beta1 != defaults.beta1, {kAdam, kAdamW});
  check("beta2", beta2 != defaults.beta2, {kAdam, kAdamW});
  check("eps", eps != defaults.eps, {kAdagrad, kAdam, kAdamW});
  check("initial_accumulator", initial_accumulator != defaults.initial_accumulator, {kAdagrad});
  if (momentum >= 1.0 || beta1 >= 1.0 || beta2 >= 1.0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("dense_optimizer: momentum, beta1 and beta2 must be below 1, got ", momentum,
                       ", ", beta1, ", ", beta2));
  }
  schedule.validate("dense_optimizer.schedule");
}

DenseOptimizer plain_optimizer(const DenseOptimizerConfig& config) {
  DenseOptimizer optimizer;
  optimizer.type = config.type;
  optimizer.momentum = config.momentum;
  optimizer.weight_decay = config.weight_decay;
  optimizer.beta1 = config.beta1;
  optimizer.beta2 = config.beta2;
  optimizer.eps = config.eps;
  optimizer.initial_accumulator = config.initial_accumulator;
  return optimizer;
}

}  // namespace satrap::job
