#pragma once

#include <cstdint>

#include "satrap/data/config.h"
#include "satrap/data/dataset.h"

namespace satrap::data {

/// Number of rows in the training files: lines without headers, bad and blank ones included, at
/// most data.train.max_rows. Reads the files, and parses nothing. Throws as open_batches does.
std::int64_t count_rows(const Dataset& data);

/// About as many. Reads a few MiB, and concludes from them and the size of all files; exact if that
/// is all there is. The same for the same files. 0 if it cannot be known: rows from standard input
/// or a pipe, which must not be read twice, or of a topic. Throws as open_batches does.
std::int64_t estimate_rows(const Dataset& data);

/// The batch size that `auto` means for so many rows; 0: unknown.
std::int64_t fitting_batch_size(std::int64_t num_rows);

/// data.batch_size; `auto` is the size that fits the training files, or the largest if they cannot
/// be read: whoever reads them says why.
std::int64_t batch_size_of(const Dataset& data);

/// Replaces `auto` by batch_size_of the data.
void choose_batch_size(DataConfig& config);

/// Dataset::first_eval_row, counted anew.
std::int64_t count_first_eval_row(const Dataset& data);

}  // namespace satrap::data
