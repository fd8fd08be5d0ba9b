#pragma once

#include <cstdint>
#include <string_view>

namespace satrap {

enum class RowOptimizerType { kSgd, kAdagrad, kRowwiseAdagrad, kAdam, kFtrl };

/// The properties of a type beside its formulas.
struct RowOptimizerKind {
  static constexpr int kMaxOptions = 4;

  const char* name;  // in configurations and checkpoints
  int num_states;    // numbers of state of a weight, or of a row if is_rowwise
  bool is_rowwise;
  const char* options[kMaxOptions];  // those of kRowOptions that not every type has; else null

  /// Whether a row's step depends on the option of this name, which not every type has.
  constexpr bool has(std::string_view option) const {
    for (const char* own : options) {
      if (own != nullptr && own == option) return true;
    }
    return false;
  }
};

/// In the order of the enumerators.
inline constexpr RowOptimizerKind kRowOptimizers[] = {
    {"sgd", 0, false, {}},
    {"adagrad", 1, false, {"eps", "initial_accumulator"}},
    {"rowwise_adagrad", 1, true, {"eps", "initial_accumulator"}},
    {"adam", 2, false, {"beta1", "beta2", "eps"}},
    {"ftrl", 2, false, {"initial_accumulator", "beta", "l1", "l2"}},
};
constexpr const RowOptimizerKind& kind_of(RowOptimizerType type) {
  return kRowOptimizers[static_cast<int>(type)];
}
constexpr const char* name_of(RowOptimizerType type) { return kind_of(type).name; }

/// The optimizer of a table's rows, as plain numbers that kernels take by value.
/// g is the gradient of the row summed over the global batch, w its weights, t the step (from 1),
/// f the factor of the learning rate schedule at t, lr = RowOptimizer::lr * f.
/// Only rows that occur in a batch are touched ("lazy"), weight decay included.
///
///  all             g += wd * w
///  sgd             w -= lr * g
///  adagrad         n += g^2;         w -= lr * g / (sqrt(n) + eps)     (per element)
///  rowwise_adagrad n += mean(g^2);   w -= lr * g / (sqrt(n) + eps)     (one n per row)
///  adam            m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
///                  w -= lr * sqrt(1-b2^t)/(1-b1^t) * m / (sqrt(v) + eps)
///                  (lazy Adam: t is the global step, rows that do not occur keep m and v; as
///                  torch.optim.SparseAdam)
///  ftrl            FTRL-proximal (McMahan et al. 2013, Algorithm 1), a = RowOptimizer::lr:
///                  z += f * g - (sqrt(n + g^2) - sqrt(n)) / a * w;  n += g^2;
///                  w = 0 if |z| <= l1, else (sign(z) * l1 - z) / ((beta + sqrt(n)) / a + l2)
///                  The schedule scales the gradient instead of a, so that a change of f moves no
///                  weight by itself; with l1 = l2 = 0 this is w -= f * a * g / (beta + sqrt(n)).
///
/// State: sgd none; adagrad n [dim]; rowwise_adagrad n [1]; adam m [dim], v [dim]; ftrl z [dim], n
/// [dim], arrays of dim padded with zeros to a multiple of 4 (padded_dim). n starts at
/// initial_accumulator, m and v at 0; ftrl's z starts at
/// -(w * ((beta + sqrt(n)) / a + l2) + sign(w) * l1), which makes w the weight that z represents.
struct RowOptimizer {
  RowOptimizerType type = RowOptimizerType::kAdagrad;
  float lr = 0.02F;  // before the schedule
  float weight_decay = 0.0F;
  float eps = 1e-8F;
  float initial_accumulator = 0.0F;                        // n of adagrad, rowwise_adagrad, ftrl
  float beta1 = 0.9F, beta2 = 0.999F;                      // adam
  float ftrl_beta = 1.0F, ftrl_l1 = 0.0F, ftrl_l2 = 0.0F;  // ftrl

  /// Fills the state of a row whose weights have just been initialised, except for padding.
  void initialize_state(const float* weights,  // [dim]
                        float* state,          // [state_floats(type, dim)] out
                        std::int64_t dim) const;
};

/// A number of RowOptimizer that a user sets.
struct RowOption {
  const char* name;  // in configurations
  float RowOptimizer::* value;
  double min = 0.0, max = 1e308;  // allowed values
  bool is_above_min = false;      // min itself is not
};

/// lr and weight_decay, which every type has, and the others, which RowOptimizerKind lists.
inline constexpr RowOption kRowOptions[] = {
    {.name = "lr", .value = &RowOptimizer::lr, .is_above_min = true},
    {.name = "weight_decay", .value = &RowOptimizer::weight_decay},
    {.name = "eps", .value = &RowOptimizer::eps, .is_above_min = true},
    {.name = "initial_accumulator", .value = &RowOptimizer::initial_accumulator},
    {.name = "beta1", .value = &RowOptimizer::beta1, .max = 0.999999},
    {.name = "beta2", .value = &RowOptimizer::beta2, .max = 0.999999},
    {.name = "beta", .value = &RowOptimizer::ftrl_beta},
    {.name = "l1", .value = &RowOptimizer::ftrl_l1},
    {.name = "l2", .value = &RowOptimizer::ftrl_l2},
};

/// Floats of optimizer state of a row of `dim` weights, padding included.
std::int64_t state_floats(RowOptimizerType type, std::int64_t dim);

/// The optimizer's numbers for one step, the same for all rows.
struct RowStep {
  RowStep(const RowOptimizer& optimizer, double schedule_factor, std::int64_t step);

  float lr;      // with the schedule; adam: with the bias correction
  float factor;  // of the schedule (ftrl)
  float weight_decay, eps;
  float beta1, one_minus_beta1, beta2, one_minus_beta2;  // adam
  float ftrl_inverse_lr, ftrl_beta, ftrl_l1, ftrl_l2;    // ftrl
};

/// The numbers of a step for the update of one table's rows: tables with the same layout and
/// optimizer type may differ in all of them.
struct TableStep {
  RowStep step;
  std::uint64_t rounding_seed;  // for weights of 16 bits: the stream, with a row's mixed id
  std::uint32_t number;         // of the step
};

}  // namespace satrap
