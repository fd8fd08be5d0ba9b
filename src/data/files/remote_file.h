#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/data_file.h"
#include "src/data/files/random_file.h"

namespace satrap::data {

/// Whether `path` is the URL of files in a store that can be read: s3:// or hdfs://.
bool is_remote(const std::string& path);

/// The files of a URL, whose path is the name of a file, or a glob: of each folder with a wildcard
/// in its name, those that match, in natural order. Throws Error(kIo) if there is none.
std::vector<DataFile> list_remote_files(const std::string& url);

/// Size and time of one file. Throws as describe_file.
DataFile describe_remote_file(const std::string& url);

/// A read is tried again when it makes no progress for SATRAP_REMOTE_STALL, takes half of
/// SATRAP_REMOTE_TIMEOUT, or fails: with growing pauses, until SATRAP_REMOTE_TIMEOUT is over or
/// `is_cancelled`, if there is one, returns true, which also ends a try. Throws as
/// open_random_file.
std::shared_ptr<const RandomFile> open_remote_file(const std::string& url,
                                                   std::function<bool()> is_cancelled = {});

}  // namespace satrap::data
