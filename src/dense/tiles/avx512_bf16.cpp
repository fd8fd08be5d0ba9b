#include "src/dense/tiles/bf16_pairs.h"

namespace satrap::dense {
namespace {

struct Avx512Bf16 : Avx512Registers {
  static constexpr std::int64_t kStripsInPlace = 8;
  __attribute__((always_inline)) static inline Vector multiply_add(Vector sums,
                                                                   float left,
                                                                   Vector right) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(_mm512_set1_ps(left)),
                            reinterpret_cast<__m512bh>(right));
  }
};

/// The numbers of an operand in pairs: two that follow each other in the depth, the last perhaps
/// with a zero. `numbers` of them are multiplied with those of the same place.
struct Pairs {
  static std::int64_t floats(std::int64_t numbers, std::int64_t depth) {
    return pieces(pieces(depth, 2) * numbers, 16) * 16;
  }

  // Values that follow each other in the depth are side by side.
  static void along_depth(const float* from,
                          std::int64_t stride,
                          std::int64_t count,
                          std::int64_t depth,
                          float* to) {
    for (std::int64_t i = 0; i < count; ++i, from += stride, to += pieces(depth, 2)) {
      for (std::int64_t k = 0; k < depth; k += 32) {
        _mm512_mask_storeu_ps(to + k / 2, Avx512Registers::first(pieces(depth - k, 2)),
                              pairs_along_depth(from + k, depth - k));
      }
    }
  }

  // They are `stride` apart.
  static void across_depth(const float* from,
                           std::int64_t stride,
                           std::int64_t count,
                           std::int64_t depth,
                           float* to) {
    for (std::int64_t k = 0; k < depth; k += 2, from += 2 * stride, to += count) {
      for (std::int64_t i = 0; i < count; i += 16) {
        const float* const odd = k + 1 < depth ? from + stride + i : nullptr;
        _mm512_mask_storeu_ps(to + i, Avx512Registers::first(count - i),
                              pairs_across_depth(from + i, odd, count - i));
      }
    }
  }
};

bool is_along_depth(std::int64_t depth_step, std::int64_t other_step) {
  return depth_step == 1 && other_step != 1;
}

/// The task on pairs of both operands.
ProductTask on_pairs(const ProductTask& task, const float* left, const float* right) {
  ProductTask on = task;
  on.depth = pieces(task.depth, 2);
  on.a = is_along_depth(task.a.col_step, task.a.row_step) ? ProductOperand{left, on.depth, 1}
                                                          : ProductOperand{left, 1, task.rows};
  on.b = is_along_depth(task.b.row_step, task.b.col_step) ? ProductOperand{right, 1, on.depth}
                                                          : ProductOperand{right, task.cols, 1};
  return on;
}

std::int64_t pairs_floats(const ProductTask& task) {
  return Pairs::floats(task.rows, task.depth) + Pairs::floats(task.cols, task.depth);
}

std::int64_t work_floats(const ProductTask& task) {
  return pairs_floats(task) + Blocks<Avx512Bf16>::work_floats(on_pairs(task, nullptr, nullptr));
}

void multiply(const ProductTask& task, float* work) {
  float* const right = work + Pairs::floats(task.rows, task.depth);
  if (is_along_depth(task.a.col_step, task.a.row_step)) {
    Pairs::along_depth(task.a.data, task.a.row_step, task.rows, task.depth, work);
  } else {
    Pairs::across_depth(task.a.data, task.a.col_step, task.rows, task.depth, work);
  }
  if (is_along_depth(task.b.row_step, task.b.col_step)) {
    Pairs::along_depth(task.b.data, task.b.col_step, task.cols, task.depth, right);
  } else {
    Pairs::across_depth(task.b.data, task.b.row_step, task.cols, task.depth, right);
  }
  Blocks<Avx512Bf16>::multiply(on_pairs(task, work, right), work + pairs_floats(task));
}

}  // namespace

const ProductTiles kAvx512Bf16Tiles{"AVX-512 BF16", work_floats, multiply};

}  // namespace satrap::dense
