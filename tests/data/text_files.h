#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "satrap/core/error.h"
#include "satrap/data/config.h"
#include "tests/support/temporary_directory.h"

namespace satrap::data {

/// A test with its own folder for files.
class FilesTest : public testing::Test {
 protected:
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = path_of(name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string path_of(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  TemporaryDirectory folder_;
};

inline std::string gzip(const std::string& text) {
  z_stream zlib{};
  deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&zlib, text.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  deflate(&zlib, Z_FINISH);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

inline std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

/// The message of the Error that `action` throws; without one, fails the test and returns "".
inline std::string error_of(const std::function<void()>& action,
                            ErrorCode code = ErrorCode::kInvalidData) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A CSV schema with a header: the label "y", the given numbers and string features.
inline DataConfig csv_config(const std::string& path,
                             const std::vector<std::string>& numbers,
                             const std::vector<std::string>& features) {
  DataConfig config;
  config.train.path = {path};
  config.schema.label.column = "y";
  for (const std::string& name : numbers) config.schema.numeric.emplace_back().name = name;
  for (const std::string& name : features) config.schema.features.emplace_back().name = name;
  return config;
}

}  // namespace satrap::data
