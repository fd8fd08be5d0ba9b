#include "src/trainer/npy_writer.h"

#include <fmt/format.h>

namespace satrap::trainer {

NpyWriter::NpyWriter(const std::string& path,
                     const std::string& dtype,
                     const std::vector<std::int64_t>& shape)
    : file_(path) {
  constexpr std::size_t kAlignment = 64;  // of the values within the file
  constexpr std::size_t kPrefixBytes = 10;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", dtype);
  for (const std::int64_t extent : shape) header += fmt::format("{}, ", extent);
  header += ")}";
  while ((kPrefixBytes + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  file_.write(std::string_view("\x93NUMPY\x01\x00", 8));
  const char size[] = {static_cast<char>(header.size() & 0xFF),
                       static_cast<char>(header.size() >> 8)};
  file_.write(std::string_view(size, sizeof(size)));
  file_.write(header);
}

}  // namespace satrap::trainer
