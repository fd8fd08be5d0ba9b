#pragma once

#include <cstdint>

#include "src/dense/matrix.h"

namespace satrap::dense {

// The element-wise and reducing operations of the models, forward and backward. All arithmetic is
// here and in gemm.h; layers and models only connect it. Unless said otherwise outputs are
// overwritten, and `accumulate` adds to gradients of parameters.

/// y += bias (per column), then max(y, 0) if `relu`. NaN stays NaN.
void add_bias(Matrix y, const float* bias, bool relu);

void relu(Matrix y);

/// dy of y = relu(z) becomes that of z.
void relu_backward(ConstMatrix y, Matrix dy);

/// db[c] (+)= sum over rows of dy[r, c].
void sum_columns(ConstMatrix dy, float* db, bool accumulate);

/// The two above in one pass.
void relu_backward_sum_columns(ConstMatrix y, Matrix dy, float* db, bool accumulate);

/// Inverted dropout: each element is zero with probability `rate`, else scaled by 1/(1-rate). The
/// choice depends on (seed, example number, column) alone.
void dropout(Matrix y, double rate, std::uint64_t seed, std::int64_t first_example);
/// dy *= factor.
void scale(Matrix dy, float factor);

/// A linear layer of one output: y[r] = x[r] . w + bias, or += if `add`; null: no bias.
void dot_rows(ConstMatrix x, const float* w, const float* bias, Matrix y, bool add);
/// Its backward: dx[r] = dy[r] w (unless dx.data is null), dw (+)= sum dy[r] x[r], db likewise
/// (unless null).
void dot_rows_backward(ConstMatrix x,
                       const float* w,
                       ConstMatrix dy,
                       Matrix dx,
                       float* dw,
                       float* db,
                       bool accumulate);

void fill(Matrix to, float value);
void copy(ConstMatrix from, Matrix to);
void add(ConstMatrix from, Matrix to);  // to += from

/// y[r] (+)= sum of x's columns; backward: dx[r, c] = dy[r].
void sum_row(ConstMatrix x, Matrix y, bool add);
void sum_row_backward(ConstMatrix dy, Matrix dx);

/// DLRM's interaction. The vectors of a row are `first` (if not empty) and then the fields of
/// `rest`, all `width` wide; out = the dot products of every two different ones, in the order of
/// torch.tril_indices(n, n, -1). `work` holds at least dot_interaction_work(n, width) floats.
std::int64_t dot_interaction_work(std::int64_t num_vectors, std::int64_t width);
void dot_interaction(ConstMatrix first,
                     ConstMatrix rest,
                     std::int64_t width,
                     float* work,
                     Matrix out);
/// Gradients of both inputs; adds to that of `first`.
void dot_interaction_backward(ConstMatrix first,
                              ConstMatrix rest,
                              std::int64_t width,
                              ConstMatrix dout,
                              float* work,
                              Matrix dfirst,
                              Matrix drest);

/// The cheap terms of models with a wide part. A field of `pooled` is [weight, v_1 ... v_k],
/// width = k + 1: y[r] += sum_f weight_f, and with `products` also
/// 0.5 sum_j ((sum_f v_fj)^2 - sum_f v_fj^2); the v go to `factors` [rows, fields * k] as a deep
/// tower's input.
void fm(ConstMatrix pooled, std::int64_t width, bool products, Matrix factors, Matrix y);
/// dfactors.data is null if there is no deep tower.
void fm_backward(ConstMatrix pooled,
                 std::int64_t width,
                 bool products,
                 ConstMatrix dfactors,
                 ConstMatrix dy,
                 Matrix dpooled);

/// DIN's attention. A row of `keys` is a sequence of mask.cols vectors as wide as `query`; those
/// whose mask is not 0 are its elements, the others padding that is not read. `pairs` and `scores`
/// have a row per element, in order of rows and positions: num_elements(mask) of them.
std::int64_t num_elements(ConstMatrix mask);
/// pairs[n] = [q, k, q - k, q * k] of element k and the query q of its row.
void attention_pairs(ConstMatrix query, ConstMatrix keys, ConstMatrix mask, Matrix pairs);
/// y[r] = sum of score * k over the elements of row r.
void attention_sum(ConstMatrix keys, ConstMatrix mask, ConstMatrix scores, Matrix y);
/// Their backward passes, which add to the gradients of query and keys.
void attention_sum_backward(ConstMatrix keys,
                            ConstMatrix mask,
                            ConstMatrix scores,
                            ConstMatrix dy,
                            Matrix dscores,
                            Matrix dkeys);
void attention_pairs_backward(ConstMatrix query,
                              ConstMatrix keys,
                              ConstMatrix mask,
                              ConstMatrix dpairs,
                              Matrix dquery,
                              Matrix dkeys);

/// The softmax of n values, in place; with a NaN all become NaN. Returns the largest one, and the
/// sum of the powers e^(value - largest).
struct SoftmaxSum {
  float most;
  double powers;
};
SoftmaxSum softmax(float* values, std::int64_t n);
/// The same of each row.
void softmax(Matrix x);
/// dy of y = softmax(x) becomes that of x.
void softmax_backward(ConstMatrix y, Matrix dy);
/// y[r] (+)= sum of weights[r, i] * vector i, over the vectors in row r of `vectors`: weights.cols
/// of them, as wide as y.
void mix(ConstMatrix weights, ConstMatrix vectors, Matrix y, bool add);
/// Its backward, which adds to `dvectors`.
void mix_backward(ConstMatrix weights,
                  ConstMatrix vectors,
                  ConstMatrix dy,
                  Matrix dweights,
                  Matrix dvectors);

/// DCN-v2's cross: next = x0 * (u + bias) + x; u becomes u + bias, kept for the backward pass.
void cross(ConstMatrix x0, ConstMatrix x, const float* bias, Matrix u, Matrix next);
/// From d = gradient of next: dx0 += d * u (u with bias, as left by cross), du = d * x0.
void cross_backward(ConstMatrix x0, ConstMatrix u, ConstMatrix d, Matrix dx0, Matrix du);

/// Batch normalisation of columns as torch's nn.BatchNorm1d. Forward with the batch's statistics:
/// xhat is kept for the backward pass, invstd[c] too; new_mean and new_var receive the running
/// statistics after this batch (momentum 0.1, unbiased variance; with one row the variance is
/// undefined and the running one is kept).
struct BatchNormArgs {
  const float* weight;
  const float* bias;
  const float* running_mean;
  const float* running_var;
};
void batch_norm(Matrix x,
                const BatchNormArgs& args,
                Matrix xhat,
                float* invstd,
                float* new_mean,
                float* new_var);
void batch_norm_eval(Matrix x, const BatchNormArgs& args);
void batch_norm_backward(ConstMatrix xhat,
                         const float* invstd,
                         const float* weight,
                         Matrix dy,
                         float* dweight,
                         float* dbias,
                         bool accumulate);

/// Whether no value is infinite or NaN.
bool all_finite(ConstMatrix x);

}  // namespace satrap::dense
