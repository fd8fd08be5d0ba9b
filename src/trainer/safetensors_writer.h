#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satrap/core/file.h"

namespace satrap::trainer {

/// Writes tensors in the format SafeTensors (github.com/huggingface/safetensors, section Format),
/// little-endian, row-major, in pieces: the size of the header in 8 bytes, the header in JSON, then
/// the values of all tensors without gaps.
class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    std::string dtype;  // as the format writes it: "U64", "F32"
    std::int64_t value_bytes = 0;
    std::vector<std::int64_t> shape;
  };

  SafetensorsWriter(const std::string& path, const std::vector<Tensor>& tensors);

  /// The next values; of all tensors, in their order.
  void write(std::span<const std::byte> values) { file_.write(values); }

  FileWriter& file() { return file_; }

 private:
  FileWriter file_;
};

}  // namespace satrap::trainer
