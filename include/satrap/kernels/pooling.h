#pragma once

#include <cstdint>

namespace satrap {

/// How the rows of a bag become the dense network's input. An empty bag gives zeros.
///  sum    Σ w_i row_i
///  mean   Σ w_i row_i / Σ w_i      (0 if the weights sum to 0)
///  sqrtn  Σ w_i row_i / sqrt(Σ w_i²)
///  sequence  the first max_length rows in order, each times its weight, then zeros, with a mask
enum class Pooling : std::int32_t { kSum, kMean, kSqrtN, kSequence };

/// Names in the configuration and in exports, in the order of the enumerators.
inline constexpr const char* kPoolingNames[] = {"sum", "mean", "sqrtn", "sequence"};

}  // namespace satrap
