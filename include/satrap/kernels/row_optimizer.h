#pragma once

#include <cstdint>

namespace satrap {

enum class RowOptimizerType { kSgd, kAdagrad, kRowwiseAdagrad, kAdam, kFtrl };

/// Names in configurations and checkpoints, in the order of the enumerators.
inline constexpr const char* kRowOptimizerNames[] = {"sgd", "adagrad", "rowwise_adagrad", "adam",
                                                     "ftrl"};
constexpr const char* name_of(RowOptimizerType type) {
  return kRowOptimizerNames[static_cast<int>(type)];
}

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
