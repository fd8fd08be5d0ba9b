#include "src/trainer/event_file.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "tests/support/temporary_directory.h"

namespace satrap::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// CRC-32C by its definition, bit by bit.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78U & (0U - (crc & 1U)));
  }
  return ~crc;
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

template <class T>
T take(std::string_view& bytes) {
  T value{};
  if (bytes.size() < sizeof value) throw std::runtime_error("the file ends within a record");
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

/// The data of each record; checks every checksum.
std::vector<std::string> records_of(const std::string& path) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  std::vector<std::string> records;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<std::uint64_t>(rest);
    EXPECT_EQ(take<std::uint32_t>(rest), masked(crc32c(length_bytes)));
    records.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
    EXPECT_EQ(take<std::uint32_t>(rest), masked(crc32c(records.back())));
  }
  return records;
}

/// A record without the wall time at its beginning: tag and 8 bytes.
std::string without_time(const std::string& event) { return event.substr(9); }

class EventFiles : public testing::Test {
 protected:
  std::string directory() const { return directory_.path() + "/tensorboard"; }

 private:
  TemporaryDirectory directory_;
};

TEST(Crc32c, OracleKnowsTheCheckValue) { EXPECT_EQ(crc32c("123456789"), 0xE3069283U); }

TEST_F(EventFiles, BeginWithTheVersionAndTheFirstStepToCome) {
  const EventFile file(directory(), 7);
  const std::vector<std::string> records = records_of(file.path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(without_time(records[0]), std::string("\x10\0\x1a\x0d", 4) + "brain.Event:2");
  EXPECT_EQ(without_time(records[1]), "\x10\x07\x3a\x02\x08\x01");  // SessionLog of START
}

TEST_F(EventFiles, HaveAScalarForEveryNumberAndNoneForAnythingElse) {
  EventFile file(directory(), 1);
  file.add(300, {{"step", 300},
                 {"eval", {{"auc", 0.5}, {"ne", nullptr}, {"labels", {{"buy", {{"n", 2}}}}}}},
                 {"word", "1"},
                 {"list", {1, 2}}});
  // Step 300 is the varint ac 02; 0.5 is 3f000000, 2 is 40000000.
  const std::string auc = std::string("\x0a\x08") + "eval/auc" + std::string("\x15\0\0\0\x3f", 5);
  const std::string n =
      std::string("\x0a\x11") + "eval/labels/buy/n" + std::string("\x15\0\0\0\x40", 5);
  EXPECT_EQ(without_time(records_of(file.path()).at(2)),
            "\x10\xac\x02\x2a\x2b\x0a\x0f" + auc + "\x0a\x18" + n);
}

TEST_F(EventFiles, AreReadableAfterEveryReportAndSortedByTheirBeginnings) {
  EventFile first(directory(), 1);
  EventFile second(directory(), 1);  // within the same second
  EventFile third(directory(), 11);
  first.add(10, {{"auc", 0.5}});
  EXPECT_EQ(records_of(first.path()).size(), 3U);
  EXPECT_LT(first.path(), second.path());
  EXPECT_LT(second.path(), third.path());
  EXPECT_THAT(list_directory(directory()),
              ElementsAre(HasSubstr("events.out.tfevents."), HasSubstr("events.out.tfevents."),
                          HasSubstr("events.out.tfevents.")));
}

TEST_F(EventFiles, ThatCannotBeWrittenNameThemselves) {
  write_file_atomic(directory(), "a file, not a folder");
  try {
    EventFile file(directory(), 1);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr(directory()));
  }
}

}  // namespace
}  // namespace satrap::trainer
