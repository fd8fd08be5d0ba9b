#include "src/data/generate/generated_rows.h"

#include <algorithm>
#include <utility>

namespace satrap::data {
namespace {

constexpr std::int64_t kPieceRows = 1024;

std::int64_t limited(std::int64_t num_rows, const RowPass& pass) {
  return pass.max_rows > 0 ? std::min(num_rows, pass.max_rows) : num_rows;
}

}  // namespace

RowRange piece_of_pass(const RowPass& pass,
                       std::int64_t end_row,
                       std::int64_t piece_rows,
                       std::int64_t piece) {
  const RowSplit& split = pass.split;
  const std::int64_t turn_rows = split.world_size == 1 ? piece_rows : split.rows_per_turn;
  const std::int64_t pieces_per_turn = (turn_rows + piece_rows - 1) / piece_rows;
  const std::int64_t first_round = pass.first_row / turn_rows / split.world_size;
  const std::int64_t round = first_round + piece / pieces_per_turn;
  const std::int64_t turn_begin = (round * split.world_size + split.rank) * turn_rows;
  const std::int64_t begin = turn_begin + piece % pieces_per_turn * piece_rows;
  const std::int64_t end = std::min({begin + piece_rows, turn_begin + turn_rows, end_row});
  if (begin >= end_row) return {begin, begin};
  const std::int64_t first = std::max(begin, std::min(pass.first_row, end));
  return {first, end};
}

GeneratedRows::GeneratedRows(std::shared_ptr<const SyntheticGenerator> generator,
                             std::int64_t offset,
                             std::int64_t num_rows,
                             const RowPass& pass)
    : generator_(std::move(generator)),
      offset_(offset),
      num_rows_(limited(num_rows, pass)),
      pass_(pass),
      jobs_(2 * pass.num_threads + 2) {
  for (std::int64_t i = 0; i < pass.num_threads; ++i) {
    threads_.start("data-generate", [this] { generate_blocks(); });
  }
}

void GeneratedRows::generate_blocks() {
  while (Jobs::Numbered* const numbered = jobs_.acquire()) {
    Job& job = numbered->job;
    try {
      const RowRange range = piece_of_pass(pass_, num_rows_, kPieceRows, numbered->number);
      job.rows.num_rows = 0;
      if (range.first < range.end) {
        generator_->generate(offset_ + range.first, range.end - range.first, job.rows);
        job.rows.first_row = range.first;
        job.rows.row_numbers.clear();
      }
      job.end = range.first >= num_rows_;
    } catch (...) {
      job.error = std::current_exception();
    }
    const bool last = job.end || job.error;
    jobs_.deliver(numbered);
    if (last) return;
  }
}

bool GeneratedRows::next(RowBlock& block) {
  while (!ended_) {
    Jobs::Numbered* const numbered = jobs_.take();
    if (numbered == nullptr || numbered->job.end) break;
    if (numbered->job.error) {
      ended_ = true;
      std::rethrow_exception(numbered->job.error);
    }
    std::swap(block, numbered->job.rows);
    jobs_.release(numbered);
    if (block.num_rows > 0) return true;
  }
  ended_ = true;
  block.num_rows = 0;
  return false;
}

}  // namespace satrap::data
