#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/file.h"

namespace satrap::trainer {

/// Writes an array in NumPy's format .npy 1.0
/// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html), little-endian, row-major,
/// in pieces.
class NpyWriter {
 public:
  /// `dtype` as NumPy writes it: "<f4", "<u8".
  NpyWriter(const std::string& path,
            const std::string& dtype,
            const std::vector<std::int64_t>& shape);

  void write(std::span<const std::byte> values) { file_.write(values); }

  FileWriter& file() { return file_; }

 private:
  FileWriter file_;
};

}  // namespace satrap::trainer
