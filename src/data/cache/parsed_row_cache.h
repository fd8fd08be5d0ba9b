#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satrap/data/config.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/cache/job_caches.h"
#include "src/data/cache/parsed_row_file.h"
#include "src/data/cache/parsed_row_space.h"
#include "src/data/files/file_list.h"
#include "src/data/files/file_records.h"
#include "src/data/rows/bad_row_policy.h"

namespace satrap::data {

/// Opens a pass that parses the files.
using ParsePass = std::function<std::unique_ptr<RowBlockSource>(const RowPass& pass)>;

/// The cache of the rows of some files, in a folder. A pass from the first row to the last writes
/// the rows of its rank while it parses them; later passes over the same rows, also of other runs,
/// read them. Files are the same if their sizes and times are; the rows are if the same is parsed
/// in the same way (see parsing_of). What does not fit, or is damaged, is parsed again, and the log
/// says why. What cannot be written, or has no room, is not cached, and the log says why.
class ParsedRowCache {
 public:
  struct Options {
    CacheConfig config;
    std::shared_ptr<JobCaches> caches = std::make_shared<JobCaches>();
    std::string rows;      // the name of the rows: "training"
    std::string identity;  // of what is parsed of the files, and how
    FileList files;
    std::shared_ptr<FileRecords> records;  // of the files; may be null
    std::shared_ptr<BadRowPolicy> bad_rows;
    bool writes = true;  // false: only reads what is there
  };

  /// Creates the folder if there is none. Throws Error(kIo).
  explicit ParsedRowCache(Options options);

  /// `pass` begins at `begin_row` or, of a resumed run, later; `parse` opens one in its place. The
  /// schema must outlive the pass, as must the cache. One pass at a time.
  std::unique_ptr<RowBlockSource> open(const Schema& schema,
                                       const RowPass& pass,
                                       std::int64_t begin_row,
                                       const ParsePass& parse);

 private:
  std::string path_of(const RowPass& pass, std::int64_t begin_row) const;
  std::shared_ptr<ParsedRowFile> find(const std::string& path,
                                      const std::vector<DataFile>& now) const;
  std::unique_ptr<RowBlockSource> write(const std::string& path,
                                        const RowPass& pass,
                                        std::unique_ptr<RowBlockSource> rows,
                                        std::vector<DataFile> now);

  const Options options_;
  const ParsedRowSpace space_;
};

/// The keys of a schema that decide how a row is parsed, as text: no transforms, names, weights.
std::string parsing_of(const Schema& schema);

}  // namespace satrap::data
