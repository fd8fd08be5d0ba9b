#include "satrap/data/output_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/data/text_files.h"

namespace satrap::data {
namespace {

class OutputFileTest : public FilesTest {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_of(""))) {
      found.push_back(entry.path().filename());
    }
    return found;
  }
};

TEST_F(OutputFileTest, HasItsNameOnceItIsComplete) {
  OutputFile file(path_of("x.csv"));
  file.write("a,b\n");
  file.write("");
  file.write("1,2\n");
  EXPECT_EQ(file.bytes_written(), 8);
  EXPECT_FALSE(std::filesystem::exists(path_of("x.csv")));
  file.finish();
  EXPECT_EQ(read_file(path_of("x.csv")), "a,b\n1,2\n");
  EXPECT_EQ(names(), std::vector<std::string>{"x.csv"});
}

TEST_F(OutputFileTest, MayBeEmpty) {
  OutputFile file(path_of("x.csv"));
  file.finish();
  EXPECT_EQ(read_file(path_of("x.csv")), "");
}

TEST_F(OutputFileTest, LeavesNothingIfItIsNotFinished) {
  {
    OutputFile(path_of("x.csv")).write("a");
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(OutputFileTest, KeepsAnEarlierFileUntilThisOneIsComplete) {
  write("x.csv", "earlier");
  {
    OutputFile(path_of("x.csv")).write("half");
  }
  EXPECT_EQ(read_file(path_of("x.csv")), "earlier");
  OutputFile file(path_of("x.csv"));
  file.write("whole");
  file.finish();
  EXPECT_EQ(read_file(path_of("x.csv")), "whole");
}

TEST_F(OutputFileTest, APipeIsWrittenToDirectlyAndStays) {
  const std::string path = path_of("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::ifstream reader;
  const std::fstream both(path, std::ios::in | std::ios::out);  // so that no open waits
  {
    OutputFile file(path);
    file.write("a\n");
    file.finish();
  }
  reader.open(path);
  std::string line;
  std::getline(reader, line);
  EXPECT_EQ(line, "a");
  EXPECT_EQ(names(), std::vector<std::string>{"pipe"});
}

TEST_F(OutputFileTest, OneFileMayHaveSeveralNames) {
  const std::string a = write("a", "1"), b = write("b", "1");
  std::filesystem::create_hard_link(a, path_of("hard"));
  std::filesystem::create_symlink(a, path_of("soft"));
  for (const std::string& name : {a, path_of("./a"), path_of("hard"), path_of("soft")}) {
    EXPECT_TRUE(is_same_file(a, name)) << name;
    EXPECT_TRUE(is_same_file(name, a)) << name;
    EXPECT_FALSE(is_same_file(name, b)) << name;
  }
  EXPECT_TRUE(is_same_file(path_of("new"), path_of("./new")));
  EXPECT_FALSE(is_same_file(path_of("new"), path_of("newer")));
  EXPECT_FALSE(is_same_file("-", "-"));
  EXPECT_FALSE(is_same_file("/dev/null", "/dev/null"));
}

TEST_F(OutputFileTest, AFolderThatIsNotThereIsAnError) {
  const std::string path = path_of("no/x.csv");
  EXPECT_TRUE(contains(error_of([&] { OutputFile file(path); }, ErrorCode::kIo), path));
}

TEST_F(OutputFileTest, AFullDiskIsAnError) {
  const auto fill_disk = [] {
    OutputFile file("/dev/full");
    file.write(std::string(1 << 20, 'a'));
    file.finish();
  };
  EXPECT_TRUE(contains(error_of(fill_disk, ErrorCode::kIo), "/dev/full"));
}

}  // namespace
}  // namespace satrap::data
