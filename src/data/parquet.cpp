#include "src/data/parquet.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <string_view>

#include "satrap/core/error.h"
#include "satrap/core/loaded_library.h"
#include "satrap/data/parquet_support.h"

namespace satrap::data {
namespace {

struct ColumnFormat {
  std::string_view name;
  std::string_view magic;  // first and last bytes of a file
};
constexpr ColumnFormat kParquetFiles{"Parquet", "PAR1"};
constexpr ColumnFormat kArrowFiles{"Arrow", "ARROW1"};
constexpr std::string_view kStreamMagic = "\xFF\xFF\xFF\xFF";  // of an Arrow stream's first message

/// Which of them a file is, by its first bytes. Tells what is neither, or the beginning of one,
/// from what Arrow finds wrong inside.
ColumnFormat format_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorCode::kIo,
                concat("cannot open data file '", path, "': ", std::strerror(errno)));
  }
  std::string bytes(kArrowFiles.magic.size(), '\0');
  file.read(bytes.data(), std::ssize(bytes));
  file.clear();
  if (bytes.starts_with(kStreamMagic)) {
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", path, "' is an Arrow stream, and only files of Arrow are read: write it ",
               "with pyarrow.ipc.new_file or pyarrow.feather.write_feather"));
  }
  const ColumnFormat format = bytes == kArrowFiles.magic ? kArrowFiles : kParquetFiles;
  if (!bytes.starts_with(format.magic)) {
    throw Error(ErrorCode::kInvalidData,
                concat("'", path, "' is neither a Parquet file nor an Arrow file: it begins with ",
                       "neither ", kParquetFiles.magic, " nor ", kArrowFiles.magic));
  }
  const auto size = std::ssize(format.magic);
  bytes.resize(format.magic.size());
  if (!file.seekg(-size, std::ios::end) || !file.read(bytes.data(), size) ||
      bytes != format.magic || file.tellg() < 3 * size) {
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", path, "' is an incomplete ", format.name, " file: it does not end with ",
               format.magic, "; is its writer still at work, or was a copy cut off?"));
  }
  return format;
}

}  // namespace

const ParquetLibrary& parquet_library() {
  static const ParquetLibrary& opened = *reinterpret_cast<const ParquetLibrary* (*)()>(
      open_library({"libsatrap_arrow.so", "satrap_arrow", "Parquet and Arrow files",
                    "a build with the wheel pyarrow has it in lib/ beside bin/: run "
                    "./launch/setup.sh parquet, configure and build again"}))();
  return opened;
}

std::string describe_parquet() { return parquet_library().describe(); }

void translate_damage(const std::string& path, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInvalidData, concat("'", path, "' cannot be read: ", error.what()));
  }
}

std::unique_ptr<ParquetFile> open_parquet(const std::string& path) {
  const ColumnFormat format = format_of_file(path);
  const ParquetLibrary* library = nullptr;
  try {
    library = &parquet_library();
  } catch (const Error& error) {
    throw Error(error.code(), concat("'", path, "' is ",
                                     format.name == kArrowFiles.name ? "an Arrow" : "a Parquet",
                                     " file: ", error.what()));
  }
  std::unique_ptr<ParquetFile> file;
  translate_damage(path, [&] {
    file = format.name == kArrowFiles.name ? library->open_ipc(path) : library->open(path);
  });
  return file;
}

}  // namespace satrap::data
