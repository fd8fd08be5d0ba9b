#include "src/trainer/safetensors_writer.h"

#include <bit>
#include <string_view>

#include <nlohmann/json.hpp>

namespace satrap::trainer {

static_assert(std::endian::native == std::endian::little);

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<Tensor>& tensors)
    : file_(path) {
  constexpr std::size_t kAlignment = 64;  // of the first value within the file
  nlohmann::ordered_json json;
  std::int64_t end = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t begin = end;
    std::int64_t bytes = tensor.value_bytes;
    for (const std::int64_t extent : tensor.shape) bytes *= extent;
    end += bytes;
    json[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string header = json.dump();
  while ((sizeof(std::uint64_t) + header.size()) % kAlignment != 0) header += ' ';
  const std::uint64_t size = header.size();
  file_.write(std::as_bytes(std::span(&size, 1)));
  file_.write(std::string_view(header));
}

}  // namespace satrap::trainer
