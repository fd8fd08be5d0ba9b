#pragma once

#include "src/dense/tiles/copies.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kDepth = ProductTiles::kDepth;
constexpr std::int64_t kNearStep = 128;  // floats between rows that are read in place repeatedly

constexpr std::int64_t pieces(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

/// Products cut into tiles.
template <class Cpu>
struct Blocks : Copies<Cpu> {
  using Tiles<Cpu>::kVector;

  /// The columns of a product in panels, as wide as each other or one register wider, and its rows
  /// in strips.
  struct Cut {
    std::int64_t vectors, panels;                 // registers of a row, and panels
    std::int64_t widest, height;                  // registers of the widest panel, rows of a strip
    bool copies_left, copies_right, copies_last;  // the last panel may be copied alone

    explicit Cut(const ProductTask& task) : vectors(pieces(task.cols, kVector)) {
      const bool is_strip = task.rows <= Cpu::kTileRows[0];  // then each number of b is read once
      copies_left = task.a.col_step != 1 && !(is_strip && task.a.col_step <= kNearStep);
      widest = copies_left ? Cpu::kWidestOfStrips : Cpu::kWidest;
      if (is_strip && task.b.col_step == 1) {
        while (task.rows > Cpu::kTileRows[widest - 1]) --widest;
      }
      panels = pieces(vectors, widest);
      widest = panels == 0 ? 1 : pieces(vectors, panels);
      height = Cpu::kTileRows[widest - 1];
      if (copies_left && widest < Cpu::kWidestOfStrips && height > Copies<Cpu>::kStrip) {
        height = height / Copies<Cpu>::kStrip * Copies<Cpu>::kStrip;
      }
      copies_right = task.b.col_step != 1 ||
                     (task.rows > Cpu::kStripsInPlace * height && task.b.row_step > kNearStep);
      copies_last = copies_right || task.cols % kVector != 0;  // a register would read past the end
    }

    /// The first column of a panel.
    std::int64_t begin(std::int64_t panel) const { return vectors * panel / panels * kVector; }

    std::int64_t right_floats(std::int64_t depth) const {
      return copies_last ? depth * pieces(widest * kVector, 16) * 16 : 0;
    }
    std::int64_t left_floats(std::int64_t rows, std::int64_t depth) const {
      return copies_left ? depth * pieces(rows, height) * height : 0;
    }
  };

  /// Few columns, and a left operand that would be copied for them: columns are computed as rows.
  static bool is_better_transposed(const ProductTask& task) {
    return task.a.col_step != 1 && task.cols <= Cpu::kTileRows[0] && task.rows > task.cols;
  }

  static ProductTask transposed(const ProductTask& task) {
    const auto exchange = [](const ProductOperand& o) {
      return ProductOperand{o.data, o.col_step, o.row_step};
    };
    return {exchange(task.b), exchange(task.a), task.c,     task.c_stride,
            task.cols,        task.rows,        task.depth, task.end};
  }

  static std::int64_t work_floats(const ProductTask& task) {
    const ProductTask cut_task = is_better_transposed(task) ? transposed(task) : task;
    const Cut cut(cut_task);
    const std::int64_t depth = least(kDepth, task.depth);
    return cut.right_floats(depth) + cut.left_floats(cut_task.rows, depth);
  }

  static void multiply(const ProductTask& task, float* work) {
    if (is_better_transposed(task)) {
      multiply(transposed(task), /*is_transposed=*/true, work);
    } else {
      multiply(task, /*is_transposed=*/false, work);
    }
  }

  // With `is_transposed`, c and the bias are those of the product's transpose.
  static void multiply(const ProductTask& task, bool is_transposed, float* work) {
    const Cut cut(task);
    for (std::int64_t k = 0; k == 0 || k < task.depth; k += kDepth) {
      const std::int64_t depth = least(kDepth, task.depth - k);
      ProductTask block = task;
      block.depth = depth;
      block.a.data += k * task.a.col_step;
      block.b.data += k * task.b.row_step;
      block.end.accumulate = task.end.accumulate || k > 0;
      if (k + depth < task.depth) {
        block.end.bias = nullptr;
        block.end.relu = false;
      }
      float* const strips = work + cut.right_floats(depth);
      if (cut.copies_left) {
        Copies<Cpu>::copy_strips(block.a, task.rows, depth, cut.height, strips);
        block.a = {strips, 1, cut.height};
      }
      multiply_block(block, cut, is_transposed, work);
    }
  }

  // Panel by panel, each copied just before: it stays in the second-level cache for all rows.
  static void multiply_block(const ProductTask& block,
                             const Cut& cut,
                             bool is_transposed,
                             float* panel) {
    for (std::int64_t p = 0; p < cut.panels; ++p) {
      const std::int64_t j = cut.begin(p), width = cut.begin(p + 1) - j;
      ProductOperand b{block.b.data + j * block.b.col_step, block.b.row_step, block.b.col_step};
      if (p + 1 < cut.panels ? cut.copies_right : cut.copies_last) {
        Copies<Cpu>::copy_panel(b, block.depth, least(width, block.cols - j), width, panel);
        b = {panel, width, 1};
      }
      for (std::int64_t i = 0; i < block.rows; i += cut.height) {
        const std::int64_t rows = least(cut.height, block.rows - i);
        Tile tile{block.c + (is_transposed ? i + j * block.c_stride : i * block.c_stride + j),
                  block.c_stride, least(width, block.cols - j), is_transposed, block.end};
        if (tile.end.bias != nullptr) tile.end.bias += is_transposed ? i : j;
        Tiles<Cpu>::kernel(rows, width / kVector)(
            block.a.data + i * (cut.copies_left ? block.depth : block.a.row_step), block.a.row_step,
            block.a.col_step, b.data, b.row_step, block.depth, tile);
      }
    }
  }
};

}  // namespace
}  // namespace satrap::dense
