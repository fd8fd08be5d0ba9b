#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/data_file.h"
#include "src/data/files/file_list.h"

namespace satrap::data {

/// The chief's findings about a job's data, for the other ranks. Paths are those of a record.
struct ResolvedData {
  std::vector<DataFile> train, eval;  // empty: none of their own
  std::int64_t first_eval_row = -1;   // -1: no evaluation part at the tail
  std::string topic = {};             // TopicPosition::to_json; "": the rows are of files
};

std::string to_bytes(const ResolvedData& data);
ResolvedData read_resolved_data(const std::string& bytes);  // throws Error(kCorrupt)

/// The chief's files, by their paths here, as rank `rank` finds them. Throws Error(kInvalidConfig),
/// with the rank and the first file that is not there or has another size. Files in a store are the
/// chief's.
FileList as_seen_here(const std::vector<DataFile>& of_chief, std::int64_t rank);

}  // namespace satrap::data
