#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/data/cache/parsed_row_cache.h"
#include "src/data/files/file_list.h"
#include "src/data/files/file_records.h"
#include "src/data/passes/role_passes.h"
#include "src/data/terms/file_format.h"

namespace satrap::data {

/// Passes over files, all of one format.
class FilePasses final : public RolePasses {
 public:
  /// `elsewhere`, if not empty, reads the rows.
  FilePasses(const Dataset& data, Rows rows, const OpenDeliveries& elsewhere);

  void use_cache(bool writes) override;
  bool is_rereadable() const override { return files_.rereadable; }
  std::int64_t total_bytes() const override { return files_.total_bytes; }
  std::shared_ptr<FileRecords> records() const override { return records_; }
  std::vector<DataFile> files() const override;

 private:
  std::unique_ptr<RowBlockSource> open_limited(const Schema& schema,
                                               const RowPass& pass) const override;
  std::vector<std::string> paths() const override { return files_.paths(); }

  void divide();
  std::string identity_of_negatives() const;
  std::unique_ptr<RowBlockSource> parse(const Schema& schema, const RowPass& pass) const;

  const FileList& files_;  // of data()
  const FileFormat format_;
  std::shared_ptr<FileRecords> records_;  // of files_; only of training data
  std::int64_t first_eval_row_ = -1;      // if the rows from here on are for evaluation
  const OpenDeliveries elsewhere_;
  std::unique_ptr<ParsedRowCache> cache_;  // of the rows of files_; null: none
};

}  // namespace satrap::data
