#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/early_stopping_state.h"
#include "satrap/data/batch_source.h"
#include "satrap/kernels/row_layout.h"

namespace satrap::checkpoint {

/// The files of a checkpoint directory `step-<12 digits>`:
///
///   manifest.json    everything below, and the size and XXH3 of every other file; has its own
///                    checksum, written last
///   dense.bin        the dense tensors (parameters, statistics, optimizer state), fp32, in order
///   table-<i>….bin   rows of one table (one file per shard): key, last_step, count, weights,
///                    optimizer state, as in memory
///   pending-<r>.bin  lookups that rank r has already done for later steps (deterministic hybrid):
///                    step, version read, numbers of pooled and mask floats (8 bytes each), floats
///   transforms.json  the fitted numeric transforms
///   data.json        the training files (data::DataFile), in reading order; not there if the rows
///                    are from elsewhere, or in an older checkpoint; does not define the content
///   topic.json       where all ranks are in the topic (data::TopicPosition), of a job that reads
///                    one; does not define the content
///   config.yaml      the resolved configuration it was trained with; does not define the content
///
/// Numbers are little-endian.
struct Manifest {
  struct File {
    std::int64_t bytes = 0;
    std::string xxh3;  // hex
  };
  struct Table {
    std::string name, optimizer, weights;
    std::vector<std::string> files;
    std::int64_t dim = 0, row_bytes = 0, rows = 0;

    /// The layout of its rows, unless they are packed. Throws Error(kCorrupt) for names that do not
    /// exist.
    RowLayout layout() const;
  };
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t size() const;
  };
  bool has_packed_rows = false;  // format 2: rows as RowLayout::pack writes them
  std::string created, version;
  std::string folder;  // in a store, of the other files; "": they are beside the manifest
  std::int64_t step = 0, examples = 0, nonfinite_steps = 0;
  std::vector<data::DataPosition> positions;  // [num_ranks]
  std::int64_t ended_epochs = 0;              // complete with the step, if it ends one; else 0
  std::int64_t first_eval_row = -1;  // where data.eval is a tail of the rows; -1: it is not
  std::map<std::string, double> metrics;
  std::optional<EarlyStoppingState> early_stopping;  // if the run may stop early
  std::vector<Table> tables;
  std::vector<Tensor> dense;
  std::map<std::string, File> files;

  std::int64_t row_bytes(const RowLayout& layout) const {
    return has_packed_rows ? layout.packed_bytes() : layout.row_bytes;
  }

  std::string to_json() const;  // of format 3

  /// Reads and checks `directory`/manifest.json, of format 2 or 3. Throws Error(kCorrupt), also if
  /// the folder has the name of another step's checkpoint.
  static Manifest read(const std::string& directory);

  /// The same for the content of that file. `directory` may be a URL.
  static Manifest from_json(const std::string& text, const std::string& directory);

  /// The position where rank `rank` of `num_ranks` continues: where it stopped or, with another
  /// number of ranks, after the last row that any of them has read.
  data::DataPosition position_of(std::int64_t rank, std::int64_t num_ranks) const;
};

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kDenseFile = "dense.bin";
inline constexpr const char* kTransformsFile = "transforms.json";
inline constexpr const char* kDataFile = "data.json";
inline constexpr const char* kTopicFile = "topic.json";  // of a job that reads a topic
inline constexpr const char* kConfigFile = "config.yaml";
inline constexpr const char* kTemporaryPrefix = ".tmp-";
inline constexpr const char* kAbandonedPrefix = "abandoned-";

std::string pending_file(std::int64_t rank);
std::string checkpoint_name(std::int64_t step);              // "step-000000001000"
std::optional<std::int64_t> step_of(std::string_view name);  // of a checkpoint_name; else nullopt

}  // namespace satrap::checkpoint
