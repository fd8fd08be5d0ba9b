#include "satrap/core/portable_math.h"
#include "src/dense/ops.h"
#include "src/dense/simd.h"

namespace satrap::dense {

SoftmaxSum softmax(float* values, std::int64_t n) {
  constexpr double kLeast = -700.0;  // of portable_exp
  float most = values[0];
  for (std::int64_t c = 1; c < n; ++c) most = values[c] > most ? values[c] : most;
  double sum = 0.0;
  for (std::int64_t c = 0; c < n; ++c) {
    const double below = static_cast<double>(values[c] - most);
    const double power = below < kLeast ? 0.0 : (below <= 0.0 ? portable_exp(below) : below);
    values[c] = static_cast<float>(power);
    sum += power;
  }
  for (std::int64_t c = 0; c < n; ++c) {
    values[c] = static_cast<float>(static_cast<double>(values[c]) / sum);
  }
  return {most, sum};
}

void softmax(Matrix x) {
  for (std::int64_t r = 0; r < x.rows; ++r) softmax(x.row(r), x.cols);
}

void softmax_backward(ConstMatrix y, Matrix dy) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    const float* out = y.row(r);
    float* d = dy.row(r);
    const float mean = dot(out, d, y.cols);
    for (std::int64_t c = 0; c < y.cols; ++c) d[c] = out[c] * (d[c] - mean);
  }
}

void mix(ConstMatrix weights, ConstMatrix vectors, Matrix y, bool add) {
  if (!add) fill(y, 0.0F);
  for (std::int64_t r = 0; r < y.rows; ++r) {
    float* __restrict out = y.row(r);
    for (std::int64_t i = 0; i < weights.cols; ++i) {
      const float* __restrict vector = vectors.row(r) + i * y.cols;
      const float weight = weights.row(r)[i];
      for (std::int64_t c = 0; c < y.cols; ++c) out[c] += weight * vector[c];
    }
  }
}

void mix_backward(ConstMatrix weights,
                  ConstMatrix vectors,
                  ConstMatrix dy,
                  Matrix dweights,
                  Matrix dvectors) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const float* __restrict d = dy.row(r);
    for (std::int64_t i = 0; i < weights.cols; ++i) {
      const float weight = weights.row(r)[i];
      dweights.row(r)[i] = dot(d, vectors.row(r) + i * dy.cols, dy.cols);
      float* __restrict dvector = dvectors.row(r) + i * dy.cols;
      for (std::int64_t c = 0; c < dy.cols; ++c) dvector[c] += weight * d[c];
    }
  }
}

}  // namespace satrap::dense
