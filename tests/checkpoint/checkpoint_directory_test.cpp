#include "src/checkpoint/checkpoint_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/small_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace satrap::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DirectoryWriterTest : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  DirectoryWriter out_{directory_.path()};
};

TEST_F(DirectoryWriterTest, NotesSizeAndChecksumOfWhatIsWritten) {
  out_.file("some", [](FileWriter& file) { file.write("content"); });
  out_.file("empty", [](FileWriter&) {});
  EXPECT_EQ(read_file(directory_.path() + "/some"), "content");
  EXPECT_EQ(out_.manifest.files["some"].bytes, 7);
  EXPECT_EQ(out_.manifest.files["some"].xxh3, to_hex(hash_bytes("content")));
  EXPECT_EQ(out_.manifest.files["empty"].bytes, 0);
  EXPECT_EQ(out_.manifest.files["empty"].xxh3, to_hex(hash_bytes("")));
}

TEST_F(DirectoryWriterTest, AFileThatSomebodyElseWroteIsNotedAsItsOwnWouldBe) {
  const std::string large(3 << 20, 'x');  // more than is read at once
  for (const std::string& text : {std::string(), std::string("pending"), large}) {
    out_.file("own", [&](FileWriter& file) { file.write(text); });
    write_file_atomic(directory_.path() + "/other", text);
    out_.adopt("other");
    EXPECT_EQ(out_.manifest.files["other"].bytes, std::ssize(text));
    EXPECT_EQ(out_.manifest.files["other"].xxh3, out_.manifest.files["own"].xxh3);
  }
}

TEST_F(DirectoryWriterTest, AFileThatNobodyWroteIsNamed) {
  EXPECT_THAT(error_of(ErrorCode::kIo, [&] { out_.adopt("pending-1.bin"); }),
              HasSubstr(directory_.path() + "/pending-1.bin"));
  EXPECT_TRUE(out_.manifest.files.empty());
}

TEST_F(DirectoryWriterTest, TheManifestComesLastAndHasEveryFileButItself) {
  out_.manifest.positions.resize(1);
  out_.file("a", [](FileWriter& file) { file.write("1"); });
  EXPECT_THAT(list_directory(directory_.path()), ElementsAre("a"));
  out_.finish();
  EXPECT_THAT(list_directory(directory_.path()), ElementsAre("a", "manifest.json"));
  const Manifest manifest = Manifest::read(directory_.path());
  EXPECT_EQ(manifest.files.size(), 1U);
  EXPECT_EQ(manifest.files.at("a").bytes, 1);
}

TEST(TemporaryPath, IsBesideTheFinalOneAndIsNotListed) {
  EXPECT_EQ(temporary_path("runs/a", "step-1"), "runs/a/.tmp-step-1");
}

}  // namespace
}  // namespace satrap::checkpoint
