#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace satrap::prepare {

/// The arguments of `satrap data prepare`.
struct Request {
  std::string set;                                 // a name of data_set_names()
  std::string from;                                // folder with the published files
  std::string out;                                 // folder for parts, schema and configurations
  std::int64_t threads = 0;                        // >= 1 when prepare() is called
  std::int64_t part_rows = std::int64_t{1} << 20;  // rows of the source per part
  std::int64_t memory_bytes = std::int64_t{1}
                              << 30;  // for sorting; the order does not depend on it
  bool overwrite = false;  // removes parts and unedited configurations of the preparation in `out`
};

/// The content of the folder `out` afterwards.
struct Prepared {
  std::map<std::string, std::int64_t> rows;  // of each split: train, test, ...
  std::vector<std::string> notes;            // what the user should know, a sentence each
  std::string first_configuration;           // the path of one to train with
};

/// Names of the data sets, in the order of their descriptions.
std::vector<std::string> data_set_names();

/// A line for each data set: its name and what it needs.
std::string describe_data_sets();

/// Turns the published files of a data set into parts that satrap trains on, with a schema and
/// configurations. A part appears under its name once it is complete, and `out`/prepare.json knows
/// which are: after a crash the same request continues, and the bytes are those of an undisturbed
/// run, with any number of threads. Memory: memory_bytes, about 30 MiB per thread and what the
/// set's README says. Shows its progress on a terminal.
///
/// Throws Error(kInvalidConfig) for an unknown set or missing file, and if `out` holds another
/// preparation, something else or the published files; Error(kInvalidData) with file:line for rows
/// of another shape; Error(kIo).
Prepared prepare(const Request& request);

}  // namespace satrap::prepare
