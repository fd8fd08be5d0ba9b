#pragma once

#include <cstdint>

namespace satrap::dense {

/// An operand of a product: element (r, c) is data[r * row_step + c * col_step], one of the steps
/// is 1.
struct ProductOperand {
  const float* data;
  std::int64_t row_step, col_step;
};

/// The end of a matrix product: out (+)= product, then out = relu(out + bias).
struct ProductEnd {
  bool accumulate = false;
  const float* bias = nullptr;  // [columns of the result], or none
  bool relu = false;            // NaN stays
};

/// c[rows, cols] (+)= a[rows, depth] b[depth, cols], finished by `end`. c overlaps neither operand.
struct ProductTask {
  ProductOperand a, b;
  float* c;
  std::int64_t c_stride;
  std::int64_t rows, cols, depth;
  ProductEnd end;
};

/// Products with the instructions of one kind of CPU, on the calling thread. All of fp32 give the
/// same bits: an element's sum runs in the order of the depth, in blocks of kDepth that are added
/// one after the other, whatever the other sizes. Those of bf16 have an order of their own each.
struct ProductTiles {
  static constexpr std::int64_t kDepth = 256;

  const char* instructions;  // "AVX-512"
  /// `work`: so many floats at a 64-byte boundary, for copies of the operands.
  std::int64_t (*work_floats)(const ProductTask& task);
  void (*multiply)(const ProductTask& task, float* work);
};

// Each is a source in tiles/. The build has kBaseTiles, and on x86-64 all; a CPU may not run all.
extern const ProductTiles kBaseTiles, kAvx2Tiles, kAvx512Tiles;
/// Operands are rounded to bf16, to the nearest even; sums are fp32. In blocks of 2 kDepth, of two
/// products at a time, the second first.
extern const ProductTiles kAvx512Bf16Tiles;
/// In blocks of 32 from 0: those at even places, plus those at odd ones. Numbers too small to be
/// normalised count as 0, sums too.
extern const ProductTiles kAmxBf16Tiles;

}  // namespace satrap::dense
