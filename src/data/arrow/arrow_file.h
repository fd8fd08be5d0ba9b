#pragma once

#include <memory>

#include <arrow/io/interfaces.h>

#include "src/data/files/random_file.h"

namespace satrap::data {

/// `file` as Arrow reads it. Errors of it become a Status with their message.
std::shared_ptr<arrow::io::RandomAccessFile> arrow_file(std::shared_ptr<const RandomFile> file);

}  // namespace satrap::data
