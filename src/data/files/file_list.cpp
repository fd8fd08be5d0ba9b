#include "src/data/files/file_list.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <glob.h>
#include <sys/stat.h>

#include "satrap/core/error.h"
#include "src/data/files/remote_file.h"
#include "src/data/files/remote_url.h"
#include "src/data/terms/topic_url.h"

namespace satrap::data {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

/// The run of digits at `at`, without leading zeros; moves `at` past it.
std::string_view take_number(const std::string& text, std::size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t begin = at;
  while (at < text.size() && is_decimal(text[at])) ++at;
  return std::string_view(text).substr(begin, at - begin);
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> matches;
  if (::glob(pattern.c_str(), GLOB_NOSORT | GLOB_TILDE, nullptr, &found) == 0) {
    matches.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  std::sort(matches.begin(), matches.end(), natural_less);
  return matches;
}

[[noreturn]] void refuse_url(const std::string& url) {
  const std::string shown = without_password(url);
  std::string scheme = url.substr(0, url.find("://"));
  std::ranges::transform(scheme, scheme.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool is_s3 = scheme == "s3" || scheme == "s3a" || scheme == "s3n";
  if (is_s3 || scheme == "hdfs") {
    throw Error(ErrorCode::kInvalidConfig,
                concat("'", shown, "' names a file in ", is_s3 ? "S3" : "HDFS",
                       " by another scheme: write ", is_s3 ? "s3" : "hdfs", "://"));
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("'", shown, "' is a URL of neither S3 (s3://) nor HDFS (hdfs://), which ",
                     "are read: copy the data here, or pipe it: `... | satrap train JOB "
                     "data.train.path=-`"));
}

/// An empty file has no rows; `empty` is the first one.
void add_file(DataFile file, FileList& files, std::string& empty) {
  if (file.bytes != 0) return files.add(std::move(file));
  if (empty.empty()) empty = file.path;  // such as Spark's _SUCCESS, or an hour without rows
}

}  // namespace

DataFile describe_file(const std::string& path) {
  if (is_remote(path)) return describe_remote_file(path);
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    throw Error(ErrorCode::kIo, concat("data file '", path, "': ", std::strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    throw Error(ErrorCode::kIo,
                concat("data file '", path, "' is a directory; to read the files in it write '",
                       path, path.ends_with('/') ? "*'" : "/*'"));
  }
  if (!S_ISREG(info.st_mode)) return {.path = path};
  return {.path = path,
          .bytes = info.st_size,
          .modified_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

std::vector<std::string> FileList::paths() const {
  std::vector<std::string> paths;
  paths.reserve(files.size());
  for (const DataFile& file : files) paths.push_back(file.path);
  return paths;
}

void FileList::add(DataFile file) {
  rereadable = rereadable && file.is_regular();
  total_bytes = rereadable ? total_bytes + file.bytes : 0;
  files.push_back(std::move(file));
}

bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_decimal(a[i]) && is_decimal(b[j])) {
      const std::string_view x = take_number(a, i);
      const std::string_view y = take_number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  const bool a_ended = i == a.size();
  const bool b_ended = j == b.size();
  return a_ended && b_ended ? a < b : a_ended && !b_ended;
}

FileList list_files(const std::vector<std::string>& patterns) {
  FileList files;
  std::string empty;
  for (const std::string& pattern : patterns) {
    if (pattern == "-") {
      if (patterns.size() > 1) {
        throw Error(ErrorCode::kInvalidConfig,
                    "standard input ('-') cannot be combined with other data files");
      }
      return {.files = {{.path = "-"}}, .total_bytes = 0, .rereadable = false};
    }
    if (pattern.starts_with(TopicUrl::kScheme)) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat("'", without_password(pattern),
                         "' is a topic of Kafka, which only data.train.path of a ",
                         "configuration may name; write some of its rows to a file"));
    }
    if (is_remote(pattern)) {
      for (DataFile& file : list_remote_files(pattern)) add_file(std::move(file), files, empty);
      continue;
    }
    if (pattern.find("://") != std::string::npos) refuse_url(pattern);
    struct stat info{};
    if (::stat(pattern.c_str(), &info) == 0 || pattern.find_first_of("*?[") == std::string::npos) {
      add_file(describe_file(pattern), files, empty);
      continue;
    }
    const std::vector<std::string> matches = matches_of(pattern);
    if (matches.empty()) {
      throw Error(ErrorCode::kIo, concat("no data file matches '", pattern, "'"));
    }
    for (const std::string& path : matches) add_file(describe_file(path), files, empty);
  }
  if (files.files.empty()) throw Error(ErrorCode::kIo, concat("data file '", empty, "' is empty"));
  return files;
}

FileFormat format_of(DataFormat format, const FileList& files) {
  const DataFile& first = files.files.front();
  const FileFormat found = format_of(format, first.path);
  for (const DataFile& file : files.files) {
    const FileFormat other = format_of(format, file.path);
    if (other == found) continue;
    throw Error(ErrorCode::kInvalidConfig,
                concat("by their names '", first.path, "' is ", name_of(found), " and '", file.path,
                       "' is ", name_of(other), ": the files of data.train, and those of ",
                       "data.eval, are of one format; data.format says which, if names do not"));
  }
  if (is_columnar(found) && !files.rereadable) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("'", first.path, "': ", name_of(found),
                       " is read from files alone, because its description is at the end"));
  }
  return found;
}

}  // namespace satrap::data
