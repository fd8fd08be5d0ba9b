#include "src/data/text/text_rows.h"

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/parsed_rows.h"
#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class TextRowsTest : public FilesTest {
 protected:
  /// A file of rows first .. end - 1 whose number "n" and id "f" are the row's number.
  std::string write_rows(const std::string& name,
                         std::int64_t first,
                         std::int64_t end,
                         bool last_newline = true) {
    std::string text = "y,n,f\n";
    for (std::int64_t r = first; r < end; ++r) {
      text += std::to_string(r % 2) + "," + std::to_string(r) + "," + std::to_string(r);
      if (last_newline || r + 1 < end) text += "\n";
    }
    return write(name, text);
  }

  static DataConfig config_of(const std::vector<std::string>& paths) {
    DataConfig config = csv_config("", {"n"}, {"f"});
    config.schema.features[0].type = IdType::kInt;
    config.train.path = paths;
    return config;
  }

  static std::vector<std::int64_t> numbers_of(const ReadResult& result) {
    std::vector<std::int64_t> numbers;
    for (const ParsedRow& row : result.rows) {
      numbers.push_back(row.number);
      EXPECT_EQ(row.bags[0], std::vector<std::uint64_t>{static_cast<std::uint64_t>(row.number)});
      EXPECT_EQ(row.label, static_cast<float>(row.number % 2));
    }
    return numbers;
  }

  static std::vector<std::int64_t> range(std::int64_t first, std::int64_t end) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = first; i < end; ++i) numbers.push_back(i);
    return numbers;
  }
};

TEST_F(TextRowsTest, RowsComeInOrderForAnyNumberOfThreadsAndBlockSize) {
  const DataConfig config =
      config_of({write_rows("1", 0, 700), write_rows("2", 700, 701), write_rows("3", 701, 2000)});
  for (const std::int64_t num_threads : {1, 2, 5}) {
    for (const std::int64_t block_bytes : {8, 100, 100'000}) {
      const ReadResult result =
          read_text(config, {.num_threads = num_threads}, {.block_bytes = block_bytes});
      EXPECT_EQ(numbers_of(result), range(0, 2000)) << num_threads << " " << block_bytes;
    }
  }
}

TEST_F(TextRowsTest, EachFileEndsItsLastLine) {
  const DataConfig config =
      config_of({write_rows("1", 0, 7, false), write_rows("2", 7, 10, false)});
  for (const std::int64_t block_bytes : {8, 100'000}) {
    EXPECT_EQ(numbers_of(read_text(config, {}, {.block_bytes = block_bytes})), range(0, 10));
  }
}

TEST_F(TextRowsTest, PackedFilesGiveTheSameRows) {
  std::string text = "y,n,f\n";
  for (int r = 0; r < 3000; ++r) {
    text += std::to_string(r % 2) + "," + std::to_string(r) + "," + std::to_string(r) + "\n";
  }
  const DataConfig config = config_of({write("1.gz", gzip(text))});
  EXPECT_EQ(numbers_of(read_text(config, {}, {.block_bytes = 1000})), range(0, 3000));
  EXPECT_EQ(numbers_of(read_text(config_of({write("1.zst", zstd(text))}))), range(0, 3000));
}

TEST_F(TextRowsTest, ATruncatedFileGivesTheRowsBeforeAndThenAnError) {
  std::string text = "y,n,f\n";
  for (int r = 0; r < 100'000; ++r) text += "1,2," + std::to_string(r * 7919 % 99'991) + "\n";
  const std::string packed = gzip(text);
  const DataConfig config = config_of({write("1.gz", packed.substr(0, packed.size() / 2))});
  const Schema schema = resolve_schema(config);
  TextRows rows(schema, list_files(config.train.path), {},
                std::make_shared<BadRowPolicy>(false, BadRowLimit(), [](const std::string&) {}),
                {.block_bytes = 10'000});
  std::int64_t num_rows = 0;
  const std::string message = error_of([&] {
    RowBlock block;
    while (rows.next(block)) num_rows += block.num_rows;
  });
  EXPECT_TRUE(contains(message, "1.gz': the gzip data end before their end mark")) << message;
  EXPECT_GT(num_rows, 30'000);
  RowBlock block;
  EXPECT_FALSE(rows.next(block));
}

TEST_F(TextRowsTest, RanksGetEveryRowOnceInTurns) {
  const DataConfig config = config_of({write_rows("1", 0, 501), write_rows("2", 501, 1003)});
  for (const std::int64_t rows_per_turn : {1, 7, 400, 5000}) {
    std::vector<std::int64_t> rank_of(1003, -1);
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const RowPass pass{.split = {.rank = rank, .world_size = 3, .rows_per_turn = rows_per_turn}};
      for (const std::int64_t row : numbers_of(read_text(config, pass, {.block_bytes = 300}))) {
        EXPECT_EQ(rank_of[static_cast<std::size_t>(row)], -1) << "row " << row;
        rank_of[static_cast<std::size_t>(row)] = rank;
      }
    }
    for (std::size_t row = 0; row < rank_of.size(); ++row) {
      const auto turn = static_cast<std::int64_t>(row) / rows_per_turn;
      ASSERT_EQ(rank_of[row], turn % 3) << "row " << row;
    }
  }
}

TEST_F(TextRowsTest, RowsOfOtherRanksAreNotEvenParsed) {
  const DataConfig config = config_of({write("1", "y,n,f\n1,1,0\nrubbish\n0,1,2\nrubbish\n")});
  const ReadResult result =
      read_text(config, {.split = {.rank = 0, .world_size = 2, .rows_per_turn = 1}});
  EXPECT_EQ(result.rows.size(), 2U);
  EXPECT_EQ(result.num_bad, 0);
}

TEST_F(TextRowsTest, APassMayBeginAndEndAnywhere) {
  const DataConfig config = config_of({write_rows("1", 0, 501), write_rows("2", 501, 1003)});
  const LineCutter::Limits limits{.block_bytes = 300};
  for (const std::int64_t first : {0, 1, 250, 501, 1002, 1003, 2000}) {
    EXPECT_EQ(numbers_of(read_text(config, {.first_row = first}, limits)), range(first, 1003));
    EXPECT_EQ(numbers_of(read_text(config, {.first_row = first, .max_rows = 700}, limits)),
              range(first, 700));
  }
  EXPECT_EQ(numbers_of(read_text(config,
                                 {.first_row = 10,
                                  .max_rows = 0,
                                  .split = {.rank = 1, .world_size = 2, .rows_per_turn = 8}},
                                 limits))[0],
            10);
}

TEST_F(TextRowsTest, ALineWithoutEndIsAnError) {
  const DataConfig config = config_of({write("1", "y,n,f\n1,2,3\n" + std::string(10'000, 'x'))});
  const std::string message =
      error_of([&] { read_text(config, {}, {.block_bytes = 16, .line_bytes = 1000}); });
  EXPECT_TRUE(contains(message, "/1:3: no end of line")) << message;
}

TEST_F(TextRowsTest, ALineMayBeLongerThanABlock) {
  DataConfig config =
      csv_config(write("1", "y,f\n1," + std::string(10'000, 'x') + "\n0,a\n"), {}, {"f"});
  EXPECT_EQ(read_text(config, {}, {.block_bytes = 16}).rows.size(), 2U);
}

TEST_F(TextRowsTest, AFileWithoutHeaderMayBeginWithBlocksOfBlankLines) {
  for (const int blank : {1, 31, 32, 33, 64, 100}) {
    DataConfig config = csv_config(
        write("log.csv", std::string(static_cast<std::size_t>(blank), '\n') + "5,1\n6,0\n"), {"n"},
        {});
    config.schema.header = false;
    config.schema.numeric[0].column = "0";
    config.schema.label.column = "1";
    const ReadResult result = read_text(config, {}, {.block_bytes = 33});
    ASSERT_EQ(result.rows.size(), 2U) << blank;
    EXPECT_EQ(result.rows[0].number, blank);
    EXPECT_EQ(result.rows[1].numeric, std::vector<std::string>{show(6)});
    write("blank.csv", std::string(static_cast<std::size_t>(blank), '\n'));
    config.train.path = {path_of("blank.csv")};
    EXPECT_TRUE(read_text(config, {}, {.block_bytes = 33}).rows.empty()) << blank;
  }
}

TEST_F(TextRowsTest, OnlyTheFirstTenBadRowsAreShown) {
  std::string text = "y,n,f\n";
  for (int i = 0; i < 50; ++i) text += "1,x," + std::to_string(i) + "\n1,2,3\n";
  const DataConfig config = config_of({write("1", text)});
  for (const std::int64_t block_bytes : {20, 100'000}) {
    const ReadResult result = read_text(config, {.num_threads = 2}, {.block_bytes = block_bytes});
    EXPECT_EQ(result.rows.size(), 50U);
    EXPECT_EQ(result.num_bad, 50);
    ASSERT_EQ(result.bad.size(), 11U);
    EXPECT_TRUE(contains(result.bad[9], "/1:20: column 'n'")) << result.bad[9];
    EXPECT_EQ(result.bad[10], "further bad rows are counted without being shown");
  }
}

TEST_F(TextRowsTest, ABadRowMayEndReading) {
  DataConfig config = config_of({write("1", "y,n,f\n1,2,3\n1,x,3\n1,y,3\n")});
  config.on_bad_row = OnBadRow::kStop;
  const std::string message = error_of([&] { read_text(config); });
  EXPECT_EQ(message, path_of("1") + ":3: column 'n': expected a number, got \"x\"");
}

TEST_F(TextRowsTest, TooManyBadRowsEndReading) {
  DataConfig config = config_of({write("1", "y,n,f\n1,2,3\n1,x,3\n1,y,3\n")});
  config.max_bad_rows = "2";
  EXPECT_EQ(read_text(config).num_bad, 2);
  config.max_bad_rows = "1";
  EXPECT_TRUE(contains(error_of([&] { read_text(config); }), "data.max_bad_rows = 1"));
}

TEST_F(TextRowsTest, CloseEndsAReadThatWaitsForAPipe) {
  const std::string path = path_of("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Opened for reading and writing, so that neither side waits for the other to open.
  std::fstream writer(path, std::ios::in | std::ios::out);
  writer << "y,n,f\n1,0,0\n" << std::flush;
  const DataConfig config = config_of({path});
  const Schema schema = resolve_schema(config);
  TextRows rows(schema, list_files(config.train.path), {},
                std::make_shared<BadRowPolicy>(false, BadRowLimit(), [](const std::string&) {}));
  std::thread closer([&] { rows.close(); });
  RowBlock block;
  EXPECT_FALSE(rows.next(block));
  closer.join();
}

TEST_F(TextRowsTest, StandardInputIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept_stdin = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  std::thread writer([&] {
    for (int r = 0; r < 3; ++r) {
      const std::string line =
          (r == 0 ? "y,n,f\n" : "") + std::to_string(r % 2) + ",1," + std::to_string(r) + "\n";
      EXPECT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }
    close(ends[1]);
  });
  const ReadResult result = read_text(config_of({"-"}));
  writer.join();
  dup2(kept_stdin, STDIN_FILENO);
  close(kept_stdin);
  close(ends[0]);
  EXPECT_EQ(numbers_of(result), range(0, 3));
}

TEST_F(TextRowsTest, ASourceMayBeLeftInTheMiddle) {
  const DataConfig config = config_of({write_rows("1", 0, 5000)});
  const Schema schema = resolve_schema(config);
  TextRows rows(schema, list_files(config.train.path), {.num_threads = 2},
                std::make_shared<BadRowPolicy>(false, BadRowLimit(), [](const std::string&) {}),
                {.block_bytes = 100});
  RowBlock block;
  EXPECT_TRUE(rows.next(block));
}

TEST(CountNewlines, AgreesWithCountingOneByOne) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += i % 7 == 0 || i % 64 == 3 ? '\n' : 'x';
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 63, 64, 65, 1000, 16'320, 16'321, 40'000}) {
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) expected += text[i] == '\n' ? 1 : 0;
    EXPECT_EQ(count_newlines(text.data(), text.data() + size), expected) << size;
  }
}

}  // namespace
}  // namespace satrap::data
