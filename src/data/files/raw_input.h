#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "src/data/files/byte_stream.h"

namespace satrap::data {

/// The bytes of a file, a pipe or a file in a store as they are, from the beginning to the end. Its
/// first bytes can be seen before they are read. One thread at a time.
class RawInput {
 public:
  RawInput(std::string name, std::atomic<std::int64_t>& bytes_read, Interruption& interruption)
      : name_(std::move(name)), interruption_(interruption), bytes_read_(bytes_read) {}
  virtual ~RawInput() = default;
  RawInput(const RawInput&) = delete;
  RawInput& operator=(const RawInput&) = delete;

  /// The first bytes, up to eight, fewer only if the file is shorter.
  std::string_view peek();

  /// As ByteStream::read.
  std::size_t read(char* out, std::size_t size);

  const std::string& name() const { return name_; }
  bool is_cancelled() const { return interruption_.is_cancelled(); }

 protected:
  virtual std::size_t read_next(char* out, std::size_t size) = 0;

  const std::string name_;
  Interruption& interruption_;

 private:
  std::size_t read_counted(char* out, std::size_t size);

  std::atomic<std::int64_t>& bytes_read_;
  std::string head_;
  std::size_t head_given_ = 0;
};

/// Opens `path` as open_byte_stream does.
std::unique_ptr<RawInput> open_raw_input(const std::string& path,
                                         std::atomic<std::int64_t>& bytes_read,
                                         Interruption& interruption);

}  // namespace satrap::data
