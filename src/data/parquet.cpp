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

constexpr std::string_view kMagic = "PAR1";  // first and last bytes of a file

/// Tells what is no Parquet, or the beginning of it, from what Arrow finds wrong inside.
void check_ends(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorCode::kIo,
                concat("cannot open data file '", path, "': ", std::strerror(errno)));
  }
  std::string bytes(kMagic.size(), '\0');
  const auto size = static_cast<std::streamsize>(kMagic.size());
  if (!file.read(bytes.data(), size) || bytes != kMagic) {
    throw Error(ErrorCode::kInvalidData,
                concat("'", path, "' is no Parquet file: it does not begin with ", kMagic));
  }
  if (!file.seekg(-size, std::ios::end) || !file.read(bytes.data(), size) || bytes != kMagic ||
      file.tellg() < 3 * size) {
    throw Error(ErrorCode::kInvalidData,
                concat("'", path, "' is an incomplete Parquet file: it does not end with ", kMagic,
                       "; is its writer still at work, or was a copy cut off?"));
  }
}

}  // namespace

const ParquetLibrary& parquet_library() {
  static const ParquetLibrary& opened = *reinterpret_cast<const ParquetLibrary* (*)()>(
      open_library({"libsatrap_parquet.so", "satrap_parquet", "Parquet files",
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
    throw Error(ErrorCode::kInvalidData,
                concat("'", path, "' cannot be read as Parquet: ", error.what()));
  }
}

std::unique_ptr<ParquetFile> open_parquet(const std::string& path) {
  check_ends(path);
  const ParquetLibrary* library = nullptr;
  try {
    library = &parquet_library();
  } catch (const Error& error) {
    throw Error(error.code(), concat("'", path, "' is a Parquet file: ", error.what()));
  }
  std::unique_ptr<ParquetFile> file;
  translate_damage(path, [&] { file = library->open(path); });
  return file;
}

}  // namespace satrap::data
