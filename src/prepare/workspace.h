#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/core/progress_line.h"
#include "satrap/core/thread_pool.h"
#include "satrap/prepare/prepare.h"
#include "src/prepare/folder_lock.h"
#include "src/prepare/line_block.h"

namespace satrap::prepare {

/// The folder of a preparation and its manifest, prepare.json: what the source files were, which
/// stages are done and which parts are complete. The manifest is replaced atomically after each of
/// them, so that a killed preparation continues with the next. The folder is locked meanwhile. One
/// thread, except for `pool`.
class Workspace {
 public:
  /// Opens or creates `request.out`. `sources`: the files of `request.from` that are read. With
  /// `request.overwrite`, removes the parts and unedited configurations of the preparation that is
  /// there, and no other files. Throws Error(kInvalidConfig) if another process has the folder, if
  /// it holds a source, something else than a preparation, or one of other files or settings and
  /// `request.overwrite` is not set; Error(kCorrupt) for a broken manifest.
  Workspace(const Request& request, const std::vector<std::string>& sources);

  const Request& request() const { return request_; }
  ThreadPool& pool() { return pool_; }

  std::string path(const std::string& name) const { return request_.out + "/" + name; }

  /// A folder for what is removed at the end.
  std::string temporary_path(const std::string& name) const { return work_folder() + "/" + name; }

  /// The result of a stage; null if it is not done.
  const nlohmann::ordered_json* stage(const std::string& name) const;
  void finish_stage(const std::string& name, nlohmann::ordered_json found);

  /// Complete pieces of the source, and rows of each split in them.
  std::int64_t num_pieces() const { return std::ssize(manifest_.at("pieces")); }
  std::map<std::string, std::int64_t> rows() const;

  /// Names the parts of the next piece, by the rows of each split, before any of them has its name.
  void begin_piece(const std::map<std::string, std::int64_t>& rows);
  /// All of them have theirs: the piece is complete.
  void finish_piece();

  bool is_finished() const { return manifest_.contains("finished"); }
  /// Removes temporary files and says that the preparation is complete.
  void finish();

  /// On a terminal, at most a few times a second: "criteo: writing parts  45%  12,000,000 rows".
  void show(std::string_view what, const LineSource& source, std::int64_t rows);

 private:
  std::string work_folder() const { return path("prepare.work"); }
  void save() const;
  void remove_replaced();

  const Request request_;
  const FolderLock lock_;
  ThreadPool pool_;
  ProgressLine progress_;
  double last_shown_ = 0.0;  // seconds of the steady clock
  nlohmann::ordered_json manifest_;
};

}  // namespace satrap::prepare
