#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/synthetic.h"

namespace satrap::data {

/// The size of the written file, and the best metrics that can be reached on it.
struct WrittenLog {
  std::int64_t bytes = 0;                  // of the file, compressed
  BestReachable best;                      // AUC over 4 million rows at most, spread over the file
  std::vector<std::int64_t> distinct_ids;  // [num_features] that occur; estimates, about 1 %
};

/// Throws Error(kInvalidConfig) starting with `where` unless rows of `config` fit Criteo's format:
/// 13 numbers and 26 features of at most one id.
void check_criteo_shape(const SyntheticConfig& config, const std::string& where);

/// Appends the rows of a block in Criteo's format: label, 13 integers, 26 ids in hex, separated by
/// tabs; blank where missing. Ids have 8 digits, or 16 in features that need it (wide_ids). A
/// reader of Criteo files gets the same labels, numbers and ids that generate() made.
void append_criteo_tsv(const SyntheticGenerator& generator,
                       const RowBlock& block,
                       std::string& text);

/// Writes rows first_row .. first_row + num_rows - 1 as a Criteo file; num_threads generate, format
/// and compress, and the text is the same for any number of them. `path`: "-" is standard output;
/// names in .gz and .zst are compressed (in members or frames of 8192 rows, as every reader of
/// these formats must accept). A file gets its name only once it is complete and on disk; if
/// writing fails, neither it nor its temporary file remains. Throws Error(kIo),
/// Error(kInvalidConfig).
WrittenLog write_criteo_tsv(const SyntheticGenerator& generator,
                            std::int64_t first_row,
                            std::int64_t num_rows,
                            const std::string& path,
                            std::int64_t num_threads);

}  // namespace satrap::data
