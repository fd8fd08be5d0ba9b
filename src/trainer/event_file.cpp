#include "src/trainer/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <ctime>
#include <iterator>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

// ---------------------------------------------------------------------------------- records

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of each byte alone.
constexpr std::array<std::uint32_t, 256> kCrcOfByte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    table[byte] = crc;
  }
  return table;
}();

/// The checksum of a record, masked as the format requires.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kCrcOfByte[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return std::rotr(~crc, 15) + 0xA282EAD8U;
}

template <class T>
  requires std::is_trivially_copyable_v<T>
std::string bytes_of(T value) {
  static_assert(std::endian::native == std::endian::little, "files are little-endian");
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string record(const std::string& data) {
  const std::string length = bytes_of<std::uint64_t>(data.size());
  return length + bytes_of(masked_crc(length)) + data + bytes_of(masked_crc(data));
}

// --------------------------------------------------------------------------------- messages

/// Wire types of protocol buffers.
enum WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string tag(std::uint64_t field, WireType type) { return varint(field << 3 | type); }

std::string integer_field(std::uint64_t field, std::int64_t value) {
  return tag(field, kVarint) + varint(static_cast<std::uint64_t>(value));
}
std::string double_field(std::uint64_t field, double value) {
  return tag(field, kFixed64) + bytes_of(value);
}
std::string float_field(std::uint64_t field, float value) {
  return tag(field, kFixed32) + bytes_of(value);
}
std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return tag(field, kBytes).append(varint(bytes.size())).append(bytes);
}

/// Fields of Event, Summary, Summary.Value and SessionLog.
enum Field : std::uint64_t {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7,
  kSummaryValue = 1,
  kValueTag = 1,
  kValueSimple = 2,
  kSessionStatus = 1,
};
constexpr std::int64_t kSessionStart = 1;

/// Appends a Summary's values for the numbers in `object`, named by their paths.
void collect(const Json& object, const std::string& path, std::string& summary) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_object()) {
      collect(value, path + name + "/", summary);
    } else if (value.is_number() && path + name != "step") {
      summary += bytes_field(kSummaryValue, bytes_field(kValueTag, path + name) +
                                                float_field(kValueSimple, value.get<float>()));
    }
  }
}

/// TensorBoard reads the files of a directory in the order of their names, which begin with a time:
/// the new file's is later than all existing ones, whatever the clock says.
std::string new_path(const std::string& directory, std::vector<std::string> earlier_names) {
  ensure_directory(directory);
  constexpr std::string_view kPrefix = "events.out.tfevents.";
  constexpr std::size_t kDigits = 10;
  std::int64_t time = std::time(nullptr);
  std::ranges::copy(list_directory(directory), std::back_inserter(earlier_names));
  for (const std::string& name : earlier_names) {
    if (!name.starts_with(kPrefix)) continue;
    const auto earlier = parse_number<std::int64_t>(name.substr(kPrefix.size(), kDigits));
    if (earlier) time = std::max(time, *earlier + 1);
  }
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}/{}{:0{}}.{}", directory, kPrefix, time, kDigits, host.data());
}

}  // namespace

EventFile::EventFile(const std::string& directory,
                     std::int64_t first_step,
                     const std::vector<std::string>& others)
    : file_(new_path(directory, others)) {
  write_event(0, bytes_field(kFileVersion, "brain.Event:2"));
  write_event(first_step, bytes_field(kSessionLog, integer_field(kSessionStatus, kSessionStart)));
}

void EventFile::add(std::int64_t step, const Json& line) {
  std::string summary;
  collect(line, "", summary);
  write_event(step, bytes_field(kSummary, summary));
}

void EventFile::write_event(std::int64_t step, std::string_view content) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  file_.append(record(double_field(kWallTime, now.count()) + integer_field(kStep, step) +
                      std::string(content)));
}

}  // namespace satrap::trainer
