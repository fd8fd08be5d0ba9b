#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "satrap/data/batch_source.h"
#include "satrap/data/dataset.h"
#include "satrap/data/role.h"
#include "satrap/data/row_block_source.h"
#include "satrap/data/row_deliveries.h"
#include "satrap/data/schema.h"
#include "src/data/files/file_records.h"
#include "src/data/rows/bad_row_policy.h"
#include "src/data/rows/row_selection.h"
#include "src/data/topic/topic_log.h"

namespace satrap::data {

/// Opens passes over the rows of one role, wherever they come from, and keeps what these have found
/// out. One pass at a time; what is const may be called by other threads meanwhile.
class RolePasses {
 public:
  /// The rows to read, and who is told of bad ones.
  struct Rows {
    Role role = Role::kTrain;
    std::int64_t max_rows = 0;                           // 0: all
    std::shared_ptr<const RowSelection> selection = {};  // null: all
    std::shared_ptr<BadRowPolicy> bad_rows;
  };

  RolePasses(Dataset data, Rows rows) : data_(std::move(data)), rows_(std::move(rows)) {}
  virtual ~RolePasses() = default;

  /// `schema` must outlive the pass, and so must this if it uses a cache.
  std::unique_ptr<RowBlockSource> open(const Schema& schema, RowPass pass) const;

  /// Lets passes read the cache of parsed rows, if the data have one, and write it. Rows that are
  /// not of files have none.
  virtual void use_cache(bool writes);

  virtual bool is_rereadable() const { return true; }

  /// Throws Error(kInvalidConfig) if the data cannot be read more than once.
  void require_rereadable(const std::string& purpose) const;

  /// Rows of an epoch if known, else 0.
  virtual std::int64_t num_rows() const { return 0; }

  /// Bytes of an epoch; 0 if unknown, as of a pipe, or if the rows are not of files.
  virtual std::int64_t total_bytes() const { return 0; }

  /// Null if the rows are not of files, or not those of training.
  virtual std::shared_ptr<FileRecords> records() const { return nullptr; }

  /// Null if the rows are not of a topic.
  virtual std::shared_ptr<TopicLog> topic_log() const { return nullptr; }

  /// The files, with what the passes have seen of them; empty without records.
  virtual std::vector<DataFile> files() const { return {}; }

  std::optional<TopicPosition> topic_position(const DataPosition& position) const;
  std::map<std::string, std::int64_t> bad_row_reasons() const { return rows_.bad_rows->reasons(); }
  virtual std::string no_rows_message() const;

 protected:
  const Dataset& data() const { return data_; }
  const Rows& rows() const { return rows_; }
  std::string role_name() const;

 private:
  /// `pass` is limited to max_rows, and has the selection.
  virtual std::unique_ptr<RowBlockSource> open_limited(const Schema& schema,
                                                       const RowPass& pass) const = 0;

  /// The files or the topic, for people.
  virtual std::vector<std::string> paths() const { return {}; }

  const Dataset data_;
  const Rows rows_;
};

/// Throws Error(kIo | kInvalidData | kInvalidConfig) if the files or the topic cannot be used.
/// `elsewhere`, if not empty, reads the rows instead of this process.
std::unique_ptr<RolePasses> open_role(const Dataset& data,
                                      Role role,
                                      std::shared_ptr<BadRowPolicy> bad_rows,
                                      const OpenDeliveries& elsewhere = {});

}  // namespace satrap::data
