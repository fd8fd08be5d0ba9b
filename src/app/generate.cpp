#include "generate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "satrap/data/row_block.h"

namespace satrap::app {
namespace {

constexpr std::int64_t kRowsPerPiece = 8192;
constexpr std::int64_t kMaxAucRows = 20'000'000;  // 8 bytes each are kept for the AUC

/// What one thread makes before anything of it is written.
struct Piece {
  data::RowBlock block;
  std::vector<float> probabilities;
  std::string text;
};

void append_number(std::string& text, float value) {
  if (std::isnan(value)) return;
  std::array<char, 24> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<std::int64_t>(value))
          .ptr;
  text.append(digits.data(), end);
}

void append_hex(std::string& text, std::uint64_t id, bool wide) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = wide ? 60 : 28; shift >= 0; shift -= 4) text += kDigits[(id >> shift) & 15];
}

void append_rows(const data::SyntheticGenerator& generator,
                 const data::RowBlock& block,
                 std::string& text) {
  for (std::int64_t r = 0; r < block.num_rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    text += block.labels[row] > 0.5F ? '1' : '0';
    for (const auto& column : block.numeric) {
      text += '\t';
      append_number(text, column[row]);
    }
    for (std::size_t f = 0; f < block.bags.size(); ++f) {
      const data::RowBlock::Bags& bags = block.bags[f];
      text += '\t';
      if (bags.offsets[row] == bags.offsets[row + 1]) continue;
      append_hex(text, bags.ids[static_cast<std::size_t>(bags.offsets[row])],
                 generator.wide_ids(static_cast<std::int64_t>(f)));
    }
    text += '\n';
  }
}

}  // namespace

data::BestReachable generate_criteo(const data::SyntheticGenerator& generator,
                                    std::int64_t first_row,
                                    std::int64_t num_rows,
                                    ThreadPool& pool,
                                    const std::function<void(std::string_view)>& write) {
  data::BestReachableMeter meter(num_rows / kMaxAucRows + 1);
  std::vector<Piece> pieces(static_cast<std::size_t>(2 * pool.num_threads()));
  const std::int64_t end = first_row + num_rows;
  while (first_row < end) {
    const std::int64_t count =
        std::min(std::ssize(pieces), (end - first_row + kRowsPerPiece - 1) / kRowsPerPiece);
    pool.parallel_for(count, [&](std::int64_t i) {
      Piece& piece = pieces[static_cast<std::size_t>(i)];
      const std::int64_t begin = first_row + i * kRowsPerPiece;
      generator.generate(begin, std::min(kRowsPerPiece, end - begin), piece.block,
                         &piece.probabilities);
      piece.text.clear();
      append_rows(generator, piece.block, piece.text);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const Piece& piece = pieces[static_cast<std::size_t>(i)];
      meter.add(piece.probabilities, piece.block.labels);
      write(piece.text);
    }
    first_row += count * kRowsPerPiece;
  }
  return meter.result();
}

}  // namespace satrap::app
