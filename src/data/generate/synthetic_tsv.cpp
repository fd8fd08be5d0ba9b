#include "satrap/data/synthetic_tsv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/compress.h"
#include "satrap/data/output_file.h"
#include "src/data/rows/distinct_estimate.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kCriteoNumbers = 13, kCriteoFeatures = 26;
constexpr std::int64_t kRowsPerPiece = 8192;
constexpr std::int64_t kPiecesPerThread = 2;  // so that threads wait less for the slowest
constexpr std::int64_t kMaxAucRows = 4'000'000;
constexpr std::int64_t kMaxRowBytes = 2 + kCriteoNumbers * 10 + kCriteoFeatures * 17;

/// The output of one thread before any of it is written.
struct Piece {
  RowBlock block;
  std::vector<float> probabilities;
  std::string text, bytes;
  std::vector<DistinctEstimate> distinct = std::vector<DistinctEstimate>(kCriteoFeatures);
};

char* put_hex(char* out, std::uint64_t id, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) *out++ = kDigits[(id >> shift) & 15];
  return out;
}

void make_piece(const SyntheticGenerator& generator,
                std::int64_t first_row,
                std::int64_t num_rows,
                Compression compression,
                Piece& piece) {
  generator.generate(first_row, num_rows, piece.block, &piece.probabilities);
  piece.text.clear();
  append_criteo_tsv(generator, piece.block, piece.text);
  compress(compression, piece.text, piece.bytes);
  for (std::size_t f = 0; f < piece.distinct.size(); ++f) {
    piece.distinct[f].clear();
    for (const std::uint64_t id : piece.block.bags[f].ids) piece.distinct[f].add(id);
  }
}

}  // namespace

void check_criteo_shape(const SyntheticConfig& config, const std::string& where) {
  const auto fail = [&](const auto&... what) {
    throw Error(ErrorCode::kInvalidConfig, concat(where, ": ", what...));
  };
  if (config.num_numeric != kCriteoNumbers) {
    fail("a Criteo file has 13 numbers, num_numeric is ", config.num_numeric);
  }
  if (config.num_features() != kCriteoFeatures) {
    fail("a Criteo file has 26 features, cardinalities has ", config.num_features());
  }
  for (const std::int64_t most : config.max_ids) {
    if (most > 1) fail("a Criteo file has at most one id per feature, max_ids is ", most);
  }
}

void append_criteo_tsv(const SyntheticGenerator& generator,
                       const RowBlock& block,
                       std::string& text) {
  std::array<int, kCriteoFeatures> digits;
  for (std::size_t f = 0; f < digits.size(); ++f) {
    digits[f] = generator.wide_ids(static_cast<std::int64_t>(f)) ? 16 : 8;
  }
  const std::size_t before = text.size();
  text.resize(before + static_cast<std::size_t>(block.num_rows * kMaxRowBytes));
  char* out = text.data() + before;
  for (std::size_t r = 0; r < static_cast<std::size_t>(block.num_rows); ++r) {
    *out++ = block.labels[r] > 0.5F ? '1' : '0';
    for (const std::vector<double>& column : block.numeric) {
      *out++ = '\t';
      if (std::isnan(column[r])) continue;
      out = std::to_chars(out, out + 9, static_cast<std::int32_t>(column[r])).ptr;
    }
    for (std::size_t f = 0; f < block.bags.size(); ++f) {
      const RowBlock::Bags& bags = block.bags[f];
      *out++ = '\t';
      if (bags.offsets[r] == bags.offsets[r + 1]) continue;
      out = put_hex(out, bags.ids[static_cast<std::size_t>(bags.offsets[r])], digits[f]);
    }
    *out++ = '\n';
  }
  text.resize(static_cast<std::size_t>(out - text.data()));
}

WrittenLog write_criteo_tsv(const SyntheticGenerator& generator,
                            std::int64_t first_row,
                            std::int64_t num_rows,
                            const std::string& path,
                            std::int64_t num_threads) {
  SATRAP_CHECK(num_rows >= 1, path, " with ", num_rows, " rows");
  check_criteo_shape(generator.config(), path);
  const Compression compression = compression_of(path);
  OutputFile file(path);
  ThreadPool pool(num_threads);
  BestReachableMeter meter(num_rows / kMaxAucRows + 1);
  std::vector<DistinctEstimate> distinct(kCriteoFeatures);
  std::vector<Piece> pieces(static_cast<std::size_t>(kPiecesPerThread * num_threads));

  const std::int64_t end = first_row + num_rows;
  for (std::int64_t row = first_row; row < end;) {
    const std::int64_t left = (end - row + kRowsPerPiece - 1) / kRowsPerPiece;
    const std::int64_t count = std::min(std::ssize(pieces), left);
    pool.parallel_for(count, [&](std::int64_t i) {
      const std::int64_t begin = row + i * kRowsPerPiece;
      make_piece(generator, begin, std::min(kRowsPerPiece, end - begin), compression,
                 pieces[static_cast<std::size_t>(i)]);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const Piece& piece = pieces[static_cast<std::size_t>(i)];
      meter.add(piece.probabilities, piece.block.labels);
      for (std::size_t f = 0; f < distinct.size(); ++f) distinct[f].merge(piece.distinct[f]);
      file.write(piece.bytes);
    }
    row += count * kRowsPerPiece;
  }
  file.finish();

  WrittenLog log{.bytes = file.bytes_written(), .best = meter.result(), .distinct_ids = {}};
  for (const DistinctEstimate& estimate : distinct) {
    log.distinct_ids.push_back(static_cast<std::int64_t>(std::llround(estimate.count())));
  }
  return log;
}

}  // namespace satrap::data
