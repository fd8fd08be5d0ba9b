#include "src/data/text/quoted_lines.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/hash.h"
#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;

SchemaConfig csv() { return {}; }

/// The rows that the text is cut into, each without its '\n'.
Strings rows_of(std::string text, const SchemaConfig& syntax = csv()) {
  char stand_in = 0;
  char* const begin = text.data();
  const std::int64_t end =
      QuotedLines(syntax).join(begin, begin, begin + text.size(), /*is_all=*/true, stand_in);
  EXPECT_EQ(end, text.ends_with('\n') ? std::ssize(text) : end);
  Strings rows;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t row_end = std::min(text.find('\n', at), text.size());
    rows.push_back(text.substr(at, row_end - at));
    if (stand_in != 0) std::ranges::replace(rows.back(), stand_in, '\n');
    at = row_end + 1;
  }
  return rows;
}

TEST(QuotedLinesTest, AFieldInQuotesMayHaveLineEnds) {
  EXPECT_EQ(rows_of("1,a\n2,b\n"), (Strings{"1,a", "2,b"}));
  EXPECT_EQ(rows_of("1,\"a\nb\"\n2,c\n"), (Strings{"1,\"a\nb\"", "2,c"}));
  EXPECT_EQ(rows_of("\"a\n\n\nb\",1\n2\n"), (Strings{"\"a\n\n\nb\",1", "2"}));
  EXPECT_EQ(rows_of("1,\"a\"\"\n\"\"b\"\n2\n"), (Strings{"1,\"a\"\"\n\"\"b\"", "2"}));
  EXPECT_EQ(rows_of("1, \t\"a\nb\" ,2\n3\n"), (Strings{"1, \t\"a\nb\" ,2", "3"}));
  EXPECT_EQ(rows_of("1,\"a\r\nb\"\r\n2\r\n"), (Strings{"1,\"a\r\nb\"\r", "2\r"}));
  EXPECT_EQ(rows_of("\"a\nb\",\"c\nd\"\n\"e\nf\"\n"), (Strings{"\"a\nb\",\"c\nd\"", "\"e\nf\""}));
}

TEST(QuotedLinesTest, AQuoteOpensAtTheBeginningOfAFieldAlone) {
  EXPECT_EQ(rows_of("1,5\" pipe\n2,6\" pipe\n"), (Strings{"1,5\" pipe", "2,6\" pipe"}));
  EXPECT_EQ(rows_of("1,\"a\"b\"\n2,c\n"), (Strings{"1,\"a\"b\"", "2,c"}));
  SchemaConfig exact;
  exact.trim = false;
  EXPECT_EQ(rows_of("1, \"a\nb\"\n", exact), (Strings{"1, \"a", "b\""}));
}

TEST(QuotedLinesTest, AnOpenQuoteSpoilsItsLineAlone) {
  EXPECT_EQ(rows_of("1,\"a\n2,b\n3,c\n"), (Strings{"1,\"a", "2,b", "3,c"}));
  const std::string far(QuotedLines::kMostBytes, 'x');
  EXPECT_EQ(rows_of("1,\"a\n2," + far + "\n3,\"b\"\n").size(), 3U);
  EXPECT_EQ(rows_of("1,\"a\n2," + far.substr(100) + "\",3\n4\n").size(), 2U);
}

TEST(QuotedLinesTest, ByOtherSyntaxThereAreNone) {
  SchemaConfig none, old, other;
  none.quote = "";
  old.value_rule = 1;
  other.quote = "'";
  other.delimiter = ";";
  const std::string text = "1,\"a\nb\"\n";
  EXPECT_EQ(rows_of(text, none), (Strings{"1,\"a", "b\""}));
  EXPECT_EQ(rows_of(text, old), (Strings{"1,\"a", "b\""}));
  EXPECT_EQ(rows_of(text, other), (Strings{"1,\"a", "b\""}));
  EXPECT_EQ(rows_of("1;'a\nb'\n", other), Strings{"1;'a\nb'"});
}

TEST(QuotedLinesTest, TheStandInIsNoByteOfTheText) {
  std::string controls;
  for (char c = 1; c < ' '; ++c) {
    if (c != '\n' && c != '\r' && c != '\t' && c != 7) controls += c;
  }
  std::string text = controls + ",\"a\nb\"\n";
  char stand_in = 0;
  QuotedLines(csv()).join(text.data(), text.data(), text.data() + text.size(), true, stand_in);
  EXPECT_EQ(stand_in, 7);
  // With all of them, the line end is a space: still no row of its own.
  text = controls + "\x07,\"a\nb\"\n";
  stand_in = 0;
  QuotedLines(csv()).join(text.data(), text.data(), text.data() + text.size(), true, stand_in);
  EXPECT_EQ(stand_in, 0);
  EXPECT_TRUE(text.ends_with("\"a b\"\n"));
}

TEST(QuotedLinesTest, ATextBeforeChangesItsStandIn) {
  std::string text = "\"a\nb\"\n", more = std::string("\"c\x01\nd\"\n");
  char stand_in = 0;
  const QuotedLines quotes(csv());
  quotes.join(text.data(), text.data(), text.data() + text.size(), true, stand_in);
  EXPECT_EQ(stand_in, 1);
  text += more;
  char* const begin = text.data() + 6;
  quotes.join(text.data(), begin, text.data() + text.size(), true, stand_in);
  EXPECT_EQ(stand_in, 2);
  EXPECT_EQ(text,
            "\"a\x02"
            "b\"\n\"c\x01\x02"
            "d\"\n");
}

/// A quoted text of a user does not become rows, whatever it holds.
class QuotedFilesTest : public FilesTest {
 protected:
  DataConfig config(const std::string& text) {
    DataConfig config = csv_config(write("a.csv", text), {"n"}, {"s"});
    return config;
  }
  static ReadResult read(const DataConfig& config, std::int64_t block_bytes, std::int64_t threads) {
    return read_text(config, {.num_threads = threads}, {.block_bytes = block_bytes});
  }
};

/// RFC 4180, a character at a time.
std::vector<Strings> slow_rows(const std::string& text) {
  std::vector<Strings> rows(1, Strings(1));
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted) {
      if (c != '"') {
        rows.back().back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += text[i++];
      } else {
        is_quoted = false;
      }
    } else if (c == '"' && rows.back().back().empty()) {
      is_quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\n') {
      rows.emplace_back(1, "");
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST_F(QuotedFilesTest, AreReadAsTheStandardSaysWithAnyBlocksAndThreads) {
  const RandomStream random{7};
  std::string text = "y,n,s\n";
  std::uint64_t draw = 0;
  for (int r = 0; r < 300; ++r) {
    std::string field;
    for (std::uint64_t k = random.bits(draw++) % 30; k > 0; --k) {
      field += "ab,\n\"\r1 "[random.bits(draw++) % 8];
    }
    std::string quoted;
    for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += std::to_string(r % 2) + "," + std::to_string(r) + ",\"x" + quoted + "\"\n";
  }
  const std::vector<Strings> expected = slow_rows(text.substr(6));
  ASSERT_EQ(expected.size(), 300U);
  for (const std::int64_t block_bytes : {8, 64, 1000, 1 << 18}) {
    for (const std::int64_t threads : {1, 3}) {
      const ReadResult result = read(config(text), block_bytes, threads);
      EXPECT_EQ(result.num_bad, 0);
      ASSERT_EQ(result.rows.size(), expected.size()) << block_bytes;
      for (std::size_t r = 0; r < expected.size(); ++r) {
        EXPECT_EQ(result.rows[r].number, static_cast<std::int64_t>(r));
        EXPECT_EQ(result.rows[r].numeric[0], expected[r][1]);
        EXPECT_EQ(result.rows[r].bags[0], std::vector<std::uint64_t>{hash_bytes(expected[r][2])});
      }
    }
  }
}

TEST_F(QuotedFilesTest, ATextInQuotesIsNoRow) {
  std::string text = "y,n,s\n";
  for (int r = 0; r < 40; ++r) {
    text += "0," + std::to_string(r) + (r == 20 ? ",\"good\n1,99,injected\nbad\"\n" : ",x\n");
  }
  for (const std::int64_t block_bytes : {8, 1 << 18}) {
    const ReadResult result = read(config(text), block_bytes, 2);
    EXPECT_EQ(result.num_bad, 0);
    ASSERT_EQ(result.rows.size(), 40U);
    for (const ParsedRow& row : result.rows) EXPECT_EQ(row.label, 0.0F);
  }
}

TEST_F(QuotedFilesTest, LinesAreCountedAsAnEditorDoes) {
  const std::string text =
      "y,n,s\n1,1,\"a\nb\"\n1,bad,x\n0,2,\"c\n\n\nd\"\n0,bad,y\n0,3,\"open\n1,4,z\n";
  for (const std::int64_t block_bytes : {8, 1 << 18}) {
    const ReadResult result = read(config(text), block_bytes, 1);
    EXPECT_EQ(result.rows.size(), 3U);
    ASSERT_EQ(result.bad.size(), 3U);
    EXPECT_TRUE(contains(result.bad[0], "a.csv:4: "));
    EXPECT_TRUE(contains(result.bad[1], "a.csv:9: "));
    EXPECT_TRUE(contains(result.bad[2], "a.csv:10: column 's': a quote is not closed"));
  }
}

TEST_F(QuotedFilesTest, AHeaderMayHaveThem) {
  DataConfig config = this->config("y,\"n\nb\",s\n1,7,x\n");
  config.schema.numeric[0].column = "n\nb";
  const ReadResult result = read_text(config);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].numeric[0], "7");
}

}  // namespace
}  // namespace satrap::data
