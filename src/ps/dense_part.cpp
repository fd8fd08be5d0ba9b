#include "src/ps/dense_part.h"

#include <algorithm>

namespace satrap::ps {

DensePart::DensePart(const DenseOptimizer& optimizer,
                     double num_updates,
                     std::span<const float> values,
                     std::int64_t num_workers)
    : optimizer_(optimizer),
      size_(std::ssize(values) / 3),
      values_(values.begin(), values.end()),
      num_updates_(static_cast<std::size_t>(num_workers), num_updates) {}

void DensePart::read(std::int64_t worker, bool with_state, float* out) const {
  const std::int64_t begin = begin_of(worker), end = begin_of(worker + 1);
  for (std::int64_t part = 0; part < (with_state ? 3 : 1); ++part) {
    const float* from = values_.data() + part * size_;
    std::copy(from + begin, from + end, out + part * size_ + begin);
  }
}

void DensePart::update(std::int64_t worker, const float* gradient, float scale, double lr) {
  double& num_updates = num_updates_[static_cast<std::size_t>(worker)];
  num_updates += 1.0;
  float* const parameters = values_.data();
  update_dense(optimizer_, parameters, gradient, parameters + size_, parameters + 2 * size_,
               begin_of(worker), begin_of(worker + 1), scale, lr, num_updates);
}

}  // namespace satrap::ps
