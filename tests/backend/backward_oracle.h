#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "satrap/kernels/pool.h"
#include "satrap/kernels/row_update.h"
#include "tests/backend/host_rows.h"

/// The expected results of backward_update, from the CPU's own functions.
namespace satrap::testing {

inline constexpr RowOptimizerType kOptimizers[] = {
    RowOptimizerType::kSgd, RowOptimizerType::kAdagrad, RowOptimizerType::kRowwiseAdagrad,
    RowOptimizerType::kAdam, RowOptimizerType::kFtrl};
inline constexpr FloatType kFloatTypes[] = {FloatType::kFp32, FloatType::kBf16, FloatType::kFp16};

/// One case of the backward tests.
struct BackwardCase {
  RowOptimizerType optimizer = RowOptimizerType::kSgd;
  FloatType weights = FloatType::kFp32, grad = FloatType::kFp32;
  bool some_missing = false;
  std::uint64_t seed = 1;
};

inline RowOptimizer optimizer_of(RowOptimizerType type) {
  RowOptimizer optimizer;
  optimizer.type = type;
  optimizer.lr = 0.1F;
  optimizer.weight_decay = 0.01F;
  optimizer.ftrl_l1 = 0.02F;
  optimizer.ftrl_l2 = 0.1F;
  return optimizer;
}

/// The gradient of a key, from the CPU's own function.
inline std::vector<float> gradient_of(const std::vector<HostPlan::Occurrence>& occurrences,
                                      const std::vector<float>& grad,
                                      std::int64_t dim) {
  std::vector<std::uint32_t> offsets;
  std::vector<float> coefficients;
  for (const auto& occurrence : occurrences) {
    offsets.push_back(static_cast<std::uint32_t>(occurrence.target));
    coefficients.push_back(occurrence.coefficient);
  }
  const std::int64_t count = std::ssize(offsets);
  std::vector<float> sum(static_cast<std::size_t>(dim)), scratch(2 * sum.size());
  reduce_segment({grad.data(), offsets.data(), coefficients.data(), count}, 0, count, sum.data(),
                 scratch.data(), dim);
  return sum;
}

/// The update of one row, in a device's memory, by the CPU's own functions.
inline void update_on_host(const BackwardCase& c,
                           const RowLayout& layout,
                           const TableStep& step,
                           const std::vector<float>& grad,
                           std::byte* device_row) {
  std::vector<std::byte> row(static_cast<std::size_t>(layout.row_bytes));
  std::vector<float> scratch(static_cast<std::size_t>(layout.dim));
  layout.from_device(device_row, row.data());
  layout.change(row.data(), step.rounding_seed, scratch.data(), [&](float* weights, float* state) {
    with_optimizer(c.optimizer, [&](auto type) {
      update_row<type()>(step.step, weights, state, grad.data(), layout.dim);
    });
  });
  note_update(*reinterpret_cast<RowHeader*>(row.data()), step.number);
  layout.to_device(row.data(), device_row);
}

/// Gradients of the given type for the whole output, zero in the padding of vectors.
inline std::vector<std::byte> random_gradient(const HostBatch& batch,
                                              FloatType type,
                                              Random& random) {
  auto grad = random_floats(type, batch.num_examples * batch.row_stride(), random);
  for (std::int64_t i = 0; i < batch.num_examples * batch.row_stride(); ++i) {
    const std::int64_t d = (i % batch.row_stride() - 4) % batch.padded_dim();
    if (d < 0 || d >= batch.dim) put_float(type, grad.data(), i, 0.0F);
  }
  return grad;
}

}  // namespace satrap::testing
