#include "satrap/data/sample.h"

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

using Strings = std::vector<std::string>;

class SampleTest : public FilesTest {
 protected:
  Sample sample(const std::string& content, std::int64_t max_rows = 100) {
    return read_sample({write("data", content)}, max_rows);
  }
  std::string error(const std::string& content) {
    return error_of([&] { sample(content); });
  }
};

TEST_F(SampleTest, ColumnsOfACsvWithAHeader) {
  const Sample sample = this->sample("click,\"user, id\",age\r\n1,u1, 20\r\n0,\"u,2\",\r\n\r\n");
  EXPECT_EQ(sample.delimiter, ",");
  EXPECT_TRUE(sample.header);
  EXPECT_EQ(sample.names, (Strings{"click", "user, id", "age"}));
  EXPECT_EQ(sample.columns, (std::vector<Strings>{{"1", "0"}, {"u1", "u,2"}, {"20", ""}}));
  EXPECT_EQ(sample.num_rows, 2);
  EXPECT_TRUE(sample.is_whole);
  EXPECT_EQ(sample.total_rows, 2);
}

TEST_F(SampleTest, WithoutAHeaderNamesAreMadeUp) {
  const Sample sample = this->sample("39, State-gov, <=50K\n50, Private, >50K\n");
  EXPECT_FALSE(sample.header);
  EXPECT_EQ(sample.names, (Strings{"c0", "c1", "c2"}));
  EXPECT_EQ(sample.columns[1], (Strings{"State-gov", "Private"}));
}

TEST_F(SampleTest, AHeaderOfNumbersAndWords) {
  EXPECT_TRUE(sample("click,101,121\n0,5,6\n1,7,8\n").header);
}

TEST_F(SampleTest, WordsOverWordsAreAHeaderIfTheyDoNotComeBack) {
  EXPECT_TRUE(sample("color,shape\nred,round\nblue,square\n").header);
  EXPECT_FALSE(sample("red,round\nblue,square\nred,square\n").header);
  EXPECT_FALSE(sample("red,red\nblue,square\n").header);
}

TEST_F(SampleTest, TheDelimiterDividesLinesIntoTheMostFields) {
  EXPECT_EQ(sample("a\tb\tc\n1\t2 3\t4,5\n").delimiter, "\t");
  EXPECT_EQ(sample("a;b\n1;2,5\n3;4,5\n").delimiter, ";");
  EXPECT_EQ(sample("y,ids\n0,1;2;3\n1,4\n0,5;6\n").delimiter, ",");
  EXPECT_EQ(sample("a|b\n1|2\n").delimiter, "|");
  EXPECT_EQ(sample("a b\n1 2\n").delimiter, " ");
}

TEST_F(SampleTest, OnlyTheFirstRowsAreKept) {
  std::string text = "y,f\n";
  for (int i = 0; i < 100'000; ++i) text += "1,abcdefgh\n";
  const Sample sample = this->sample(text, 10);
  EXPECT_EQ(sample.num_rows, 10);
  EXPECT_FALSE(sample.is_whole);
  EXPECT_NEAR(static_cast<double>(sample.total_rows), 1e5, 2e3);
}

TEST_F(SampleTest, RowsWithOtherColumnsAreCountedAndLeftOut) {
  std::string text = "y,f\n";
  for (int i = 0; i < 20; ++i) text += "1,2\n";
  const Sample sample = this->sample(text + "1,2,3\n");
  EXPECT_EQ(sample.num_rows, 20);
  EXPECT_EQ(sample.num_ragged, 1);
  EXPECT_EQ(sample.total_rows, 21);
}

TEST_F(SampleTest, EveryFileHasItsHeader) {
  const std::vector<std::string> files = {write("a.csv", "y,f\n1,2\n"),
                                          write("b.csv.gz", gzip("y,f\n3,4\n")),
                                          write("c.csv.zst", zstd("y,f\n5,6\n"))};
  const Sample sample = read_sample(files, 100);
  EXPECT_EQ(sample.files, files);
  EXPECT_EQ(sample.columns[0], (Strings{"1", "3", "5"}));
}

TEST_F(SampleTest, FilesWithOtherHeadersAreNamedWithTheirColumns) {
  const std::string a = write("a.csv", "y,f,g\n1,2,3\n");
  const auto error_with = [&](const std::string& text) {
    const std::string b = write("b.csv", text);
    return error_of([&] { read_sample({a, b}, 100); });
  };
  const std::string names = "'" + path_of("b.csv") + "' has other columns than '" + a + "'";
  EXPECT_TRUE(contains(error_with("y,f,h\n1,2,3\n"), names + "; it lacks 'g'; only it has 'h'; "));
  EXPECT_TRUE(contains(error_with("y,f\n1,2\n"), names + "; it lacks 'g'; name files"));
  EXPECT_TRUE(contains(error_with("y,f,g,h\n1,2,3,4\n"), names + "; only it has 'h'; "));
  EXPECT_TRUE(contains(error_with("y,g,f\n1,2,3\n"), names + ": the same in another order"));
  EXPECT_TRUE(contains(error_with("1,5,6\n0,7,8\n"),
                       "does not begin with the names of the columns, as '" + a +
                           "' does: 'y', 'f', 'g'; every file needs this line"));
}

TEST_F(SampleTest, HeadersOfFilesThatAreNotLookedAtAreCompared) {
  std::string text = "y,f\n";
  for (int i = 0; i < 1000; ++i) text += "1,2\n";
  const std::string a = write("a.csv", text);
  EXPECT_TRUE(
      contains(error_of([&] { read_sample({a, write("b.csv.gz", gzip("y,g\n1,2\n"))}, 10); }),
               "it lacks 'f'"));
  EXPECT_EQ(read_sample({a, write("c.csv", "y,f\r\n1,2\r\n")}, 10).num_rows, 10);
}

TEST_F(SampleTest, FieldsInQuotesMayHaveLineEnds) {
  std::string text = "y,f,g\n";
  for (int i = 0; i < 40; ++i) text += "1,2,\"two words\"\n";
  const Sample sample = this->sample(text + "0,\"two\nlines\",3\n1,2,3,4\n");
  EXPECT_EQ(sample.num_rows, 41);
  EXPECT_EQ(sample.columns[1].back(), "two\nlines");
  EXPECT_EQ(sample.num_ragged, 1);
  EXPECT_EQ(sample.num_open_quotes, 0);
  const Sample all = this->sample("y,f\n1,\"a\nb\"\n0,\"c\n\nd\"\n1,\"c\nd\"\n");
  EXPECT_EQ(all.columns[1],
            (Strings{"a\nb", "c\nd", "c\nd"}));  // of a sample, blank lines are gone
  const Sample open = this->sample("y,f,g\n" + text.substr(6) + "0,\"open,3\n");
  EXPECT_EQ(open.num_ragged, 1);
  EXPECT_EQ(open.num_open_quotes, 1);
}

TEST_F(SampleTest, AListIsNoRow) {
  const Sample spaces =
      this->sample("user,hist,item,y\nu0,i0 i5 i9 i7 i2,i0,1\nu1,i1 i2 i3 i4 i5,i1,0\n");
  EXPECT_EQ(spaces.delimiter, ",");
  EXPECT_EQ(spaces.names, (Strings{"user", "hist", "item", "y"}));
  EXPECT_EQ(this->sample("u0,i0|i5|i9|i7|i2,i0,1\nu1,i1|i2|i3|i4|i5,i1,0\n").delimiter, ",");
  EXPECT_EQ(this->sample("u0,i0 i5 i9 i7,i1 i2 i3 i4,1\nu1,i1 i2 i3 i4,i5 i6 i7 i8,0\n").delimiter,
            ",");
  EXPECT_EQ(this->sample("h,y\n\"[1, 2, 3]\",1\n\"[4, 5, 6]\",0\n").delimiter, ",");
  EXPECT_EQ(this->sample("a|b|c|1,2\nd|e|f|3,4\n").delimiter, "|");
  EXPECT_EQ(this->sample("a\tb, c\t1\nd\te, f\t0\n").delimiter, "\t");
}

TEST_F(SampleTest, WhatIsSaidOfTheTextCounts) {
  const std::vector<std::string> files = {write("a.csv", "a|b,c\n1|2,3\n4|5,6\n")};
  EXPECT_EQ(read_sample(files, 10, {.delimiter = "|"}).names, (Strings{"a", "b,c"}));
  EXPECT_EQ(read_sample(files, 10, {.delimiter = ","}).names, (Strings{"a|b", "c"}));
  const Sample rows = read_sample(files, 10, {.delimiter = ",", .header = false});
  EXPECT_EQ(rows.names, (Strings{"c0", "c1"}));
  EXPECT_EQ(rows.num_rows, 3);
  const std::vector<std::string> words = {write("b.csv", "u,v\nw,x\nu,z\n")};
  EXPECT_FALSE(read_sample(words, 10).header);
  EXPECT_TRUE(read_sample(words, 10, {.header = true}).header);
}

TEST_F(SampleTest, DecimalCommasBecomePoints) {
  const Sample sample = this->sample("y;n;f\n1;39,02;a\n0;7;b,c\n");
  EXPECT_TRUE(sample.decimal_comma);
  EXPECT_EQ(sample.columns[1], (Strings{"39.02", "7"}));
  EXPECT_EQ(sample.columns[2], (Strings{"a", "b,c"}));
  EXPECT_FALSE(this->sample("y;n\n1;39.02\n0;7\n").decimal_comma);
  EXPECT_TRUE(this->sample("y,n\n1,\"39,02\"\n0,\"7,5\"\n").decimal_comma);
}

TEST_F(SampleTest, WhatIsNoTextInColumnsIsRefused) {
  EXPECT_TRUE(contains(error("1 3:1 5:0.5 7:1\n0 4:1 5:1 8:1\n"), "libsvm"));
  EXPECT_TRUE(contains(error("word\nanother\n"), "neither comma, tab"));
  EXPECT_TRUE(contains(error("\n\n"), "has no rows"));
  EXPECT_TRUE(contains(error("PAR1...."), "Parquet"));
}

TEST_F(SampleTest, AHeaderAloneIsARowOfWords) { EXPECT_FALSE(sample("y,f\n").header); }

}  // namespace
}  // namespace satrap::data
