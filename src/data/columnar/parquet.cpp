#include "src/data/columnar/parquet.h"

#include <algorithm>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/loaded_library.h"
#include "satrap/core/text.h"
#include "satrap/data/parquet_support.h"

namespace satrap::data {
namespace {

struct ColumnFormat {
  std::string_view name;
  std::string_view magic;  // first and last bytes of a file
};
constexpr ColumnFormat kParquetFiles{"Parquet", "PAR1"};
constexpr ColumnFormat kArrowFiles{"Arrow", "ARROW1"};
constexpr ColumnFormat kArrowStreams{"Arrow", "\xFF\xFF\xFF\xFF"};  // first bytes alone

/// The format of a file, or of a message, by its first bytes. Tells what is neither, or the
/// beginning of one, from what Arrow finds wrong inside.
ColumnFormat format_of_file(const RandomFile& file, bool may_be_stream) {
  const std::string& path = file.name();
  std::string bytes(kArrowFiles.magic.size(), '\0');
  file.read(0,
            std::span(bytes).first(std::min(bytes.size(), static_cast<std::size_t>(file.size()))));
  if (bytes.starts_with(kArrowStreams.magic)) {
    if (may_be_stream) return kArrowStreams;
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", path, "' is an Arrow stream, and only files of Arrow are read: write it ",
               "with pyarrow.ipc.new_file or pyarrow.feather.write_feather"));
  }
  const ColumnFormat format = bytes == kArrowFiles.magic ? kArrowFiles : kParquetFiles;
  if (!bytes.starts_with(format.magic)) {
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", path, "' is neither a Parquet file nor an Arrow file",
               may_be_stream ? " or stream" : "", ": it begins with neither ", kParquetFiles.magic,
               " nor ", kArrowFiles.magic, may_be_stream ? " nor four bytes FF" : ""));
  }
  const auto size = std::ssize(format.magic);
  bytes.resize(format.magic.size());
  const bool has_end = file.size() >= 3 * size;
  if (has_end) file.read(file.size() - size, bytes);
  if (!has_end || bytes != format.magic) {
    throw Error(
        ErrorCode::kInvalidData,
        concat("'", path, "' is an incomplete ", format.name, " file: it does not end with ",
               format.magic, "; is its writer still at work, or was a copy cut off?"));
  }
  return format;
}

/// Arrow says so in words, "Out of memory: malloc of size 4096 failed". A size that no part of a
/// file has comes from damage.
bool is_out_of_memory(std::string_view what) {
  constexpr std::string_view kSize = "of size ";
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  const std::size_t at = what.find(kSize);
  if (!what.starts_with("Out of memory") || at == std::string_view::npos) return false;
  const std::string_view size = what.substr(at + kSize.size());
  return parse_number<std::int64_t>(size.substr(0, size.find(' '))).value_or(INT64_MAX) <=
         kMostBytes;
}

}  // namespace

const ParquetLibrary& parquet_library() {
  static const ParquetLibrary& opened = *reinterpret_cast<const ParquetLibrary* (*)()>(
      open_library({"libsatrap_arrow.so", "satrap_arrow", "Parquet and Arrow files",
                    "satrap's packages have it in lib/ beside bin/; for a build of your own run "
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
    if (is_out_of_memory(error.what())) throw std::bad_alloc();
    throw Error(ErrorCode::kInvalidData, concat("'", path, "' cannot be read: ", error.what()));
  }
}

std::unique_ptr<ParquetFile> open_message(std::shared_ptr<const RandomFile> bytes) {
  const std::string place = bytes->name();
  const std::string_view magic = format_of_file(*bytes, /*may_be_stream=*/true).magic;
  const ParquetLibrary& library = parquet_library();
  std::unique_ptr<ParquetFile> file;
  translate_damage(place, [&] {
    file = magic == kArrowStreams.magic ? library.open_stream(std::move(bytes))
           : magic == kArrowFiles.magic ? library.open_ipc(std::move(bytes))
                                        : library.open(std::move(bytes));
  });
  return file;
}

std::unique_ptr<ParquetFile> open_parquet(const std::string& path,
                                          std::function<bool()> is_cancelled) {
  std::shared_ptr<const RandomFile> source = open_random_file(path, std::move(is_cancelled));
  const ColumnFormat format = format_of_file(*source, /*may_be_stream=*/false);
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
    file = format.name == kArrowFiles.name ? library->open_ipc(std::move(source))
                                           : library->open(std::move(source));
  });
  return file;
}

}  // namespace satrap::data
