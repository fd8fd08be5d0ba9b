#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "satrap/core/ids.h"

namespace satrap::embedding {

/// How the rows of a bag become the dense network's input. An empty bag gives zeros.
///  sum    Σ w_i row_i
///  mean   Σ w_i row_i / Σ w_i      (0 if the weights sum to 0)
///  sqrtn  Σ w_i row_i / sqrt(Σ w_i²)
///  sequence  the first max_length rows in order, each times its weight, then zeros, with a mask
enum class Pooling { kSum, kMean, kSqrtN, kSequence };

/// Names in the configuration and in exports, in the order of the enumerators.
inline constexpr std::array kPoolingNames = {"sum", "mean", "sqrtn", "sequence"};

/// One feature of a batch: which table it reads and where its output goes.
struct FeatureSpec {
  std::string name;
  TableId table{};
  Pooling pooling = Pooling::kSum;
  std::int64_t max_length = 1;  // of a sequence; else 1
};

}  // namespace satrap::embedding
