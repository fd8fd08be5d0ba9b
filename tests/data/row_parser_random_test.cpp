#include <sstream>

#include "satrap/core/hash.h"
#include "src/data/text/row_parser.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Ids = std::vector<std::uint64_t>;
using Strings = std::vector<std::string>;

/// Rows of text with their expected values, drawn from a seed: every kind of field, well and badly
/// formed.
class RandomRows {
 public:
  explicit RandomRows(std::uint64_t seed) : random_{seed} {}

  std::uint64_t below(std::uint64_t bound) { return random_.below(draws_++, bound); }

  std::string pick(const Strings& texts) { return texts[below(texts.size())]; }

  std::string number() {
    return pick({"",
                 "0",
                 "1",
                 "-3",
                 "12345",
                 "999999999999999999",
                 "1234567890123456789012",
                 "1.5",
                 "-0.125",
                 "1e3",
                 "1e-50",
                 "+4",
                 " 7 ",
                 "-",
                 "x",
                 "1e99",
                 "0x1",
                 "12 3",
                 std::to_string(below(100'000)),
                 std::to_string(below(1'000'000'000))});
  }
  std::string integer() {
    return pick({"", "0", "18446744073709551615", "18446744073709551616", "-5", "007", "a", "1.0",
                 " 8", std::to_string(below(UINT64_MAX))});
  }
  std::string hex() {
    std::ostringstream text;
    text << std::hex << (below(UINT64_MAX) >> (4 * below(16)));
    return pick({"", "68fd1e64", "FFFFFFFF", "0", "deadbeefdeadbeef", "12345678901234567",
                 "1234567g", "68fd1e64 ", "0x10", text.str(), text.str()});
  }
  std::string label() { return pick({"0", "1", "0", "1", "1.0", "2", "", "no"}); }

 private:
  RandomStream random_;
  std::uint64_t draws_ = 0;
};

std::string trimmed(std::string text) {
  while (!text.empty() && text.front() == ' ') text.erase(0, 1);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Returns false for a bad field.
bool slow_number(const std::string& text, std::string& shown) {
  shown = "-";
  if (text.empty()) return true;
  if (text.find_first_not_of("0123456789+-.e") != std::string::npos) return false;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  shown = show(value);
  return end == text.c_str() + text.size() && std::fabs(value) < 3.4028236e38;
}

bool slow_id(const std::string& text, int base, Ids& ids) {
  ids.clear();
  if (text.empty()) return true;
  const bool prefixed = base == 16 && text.starts_with("0x");
  std::string digits = prefixed ? text.substr(2) : text;
  const bool negative = base == 10 && digits.starts_with("-");
  if (negative) digits.erase(0, 1);
  if (base == 10 && digits.ends_with(".0")) digits.resize(digits.size() - 2);
  const char* allowed = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
  if (digits.empty() || digits.find_first_not_of(allowed) != std::string::npos) return false;
  unsigned __int128 value = 0;
  for (const char c : digits) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value * static_cast<unsigned>(base) + static_cast<unsigned>(digit);
    if (value > UINT64_MAX) return false;
  }
  const auto id = static_cast<std::uint64_t>(value);
  ids.push_back(negative ? 0 - id : id);
  return true;
}

class RandomText : public FilesTest, public testing::WithParamInterface<int> {};

TEST_P(RandomText, IsReadAsByASlowObviousParser) {
  RandomRows random(static_cast<std::uint64_t>(GetParam()));
  const char delimiter = "\t,|"[GetParam() % 3];
  DataConfig config = csv_config("", {"a", "b"}, {"i", "h", "s"});
  config.schema.delimiter = std::string(1, delimiter);
  config.schema.header = false;
  config.schema.columns = {"a", "unused", "i", "y", "h", "b", "s"};
  config.schema.features[0].type = IdType::kInt;
  config.schema.features[1].type = IdType::kHex;

  std::string text;
  std::vector<ParsedRow> expected;
  std::int64_t num_bad = 0;
  constexpr std::int64_t kRows = 3000;
  for (std::int64_t r = 0; r < kRows; ++r) {
    ParsedRow row{.number = r, .label = 0, .numeric = {"", ""}, .bags = {}, .weights = {}};
    row.bags.resize(3);
    row.weights.resize(3);
    Strings fields = {random.number(),
                      random.pick({"", "junk", "1"}),
                      random.integer(),
                      random.label(),
                      random.hex(),
                      random.number(),
                      random.pick({"", "a", "word word", "longer than eight bytes"})};
    // Spaces within quotes belong to the field.
    std::vector<bool> quoted(8);
    Strings values = fields;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      quoted[f] = random.below(10) == 0;
      if (!quoted[f]) values[f] = trimmed(fields[f]);
    }
    bool good = slow_number(values[0], row.numeric[0]) && slow_number(values[5], row.numeric[1]) &&
                slow_id(values[2], 10, row.bags[0]) && slow_id(values[4], 16, row.bags[1]) &&
                (values[3] == "0" || values[3] == "1" || values[3] == "1.0");
    row.label = values[3].starts_with("1") ? 1.0F : 0.0F;
    if (!values[6].empty()) row.bags[2] = {hash_bytes(values[6])};
    const std::uint64_t shift = random.below(20);
    if (shift == 0) fields.pop_back();
    if (shift == 1) fields.push_back("more");
    good = good && shift > 1;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (f > 0) text += delimiter;
      text += quoted[f] ? "\"" + fields[f] + "\"" : fields[f];
    }
    text += random.below(8) == 0 ? "\r\n" : "\n";
    if (good) expected.push_back(row);
    num_bad += good ? 0 : 1;
  }
  config.train.path = {write("random.txt", text)};
  LineCutter::Limits limits;
  limits.block_bytes = 64 + 100 * GetParam();
  const ReadResult result = read_text(config, {.num_threads = 2}, limits);
  EXPECT_EQ(result.num_bad, num_bad);
  ASSERT_EQ(result.rows.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(result.rows[i] == expected[i]) << "row " << expected[i].number;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomText, testing::Range(0, 9));

}  // namespace
}  // namespace satrap::data
