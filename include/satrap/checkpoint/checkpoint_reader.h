#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "satrap/checkpoint/checkpoint_format.h"
#include "satrap/data/data_file.h"
#include "satrap/data/topic_position.h"
#include "satrap/pipeline/model.h"
#include "satrap/pipeline/step_queue.h"
#include "satrap/ps/shard_job.h"

namespace satrap::checkpoint {

/// The step and position where a job continues, and the state outside its model.
struct RestoredState {
  Manifest manifest;
  std::vector<pipeline::PendingLookup> pending;
};

/// The fitted transforms of a checkpoint (JSON); needed before the model can be built.
std::string read_transforms(const std::string& checkpoint);

/// Path of the configuration a checkpoint was trained with, whose checksum has been compared; "" if
/// it has none (an older one may not).
std::string find_config(const std::string& checkpoint);

/// The training files of a checkpoint, in reading order, as they were when they were read; nullopt
/// if it has no record of them.
std::optional<std::vector<data::DataFile>> read_data_files(const std::string& checkpoint);

/// The checkpoint's position in a topic; nothing if it was not trained on one.
std::optional<data::TopicPosition> read_topic_position(const std::string& checkpoint);

/// Fills a freshly built model; all ranks call it. Returns the pending lookups of `rank` of
/// `num_ranks`; there are none if another number of ranks wrote the checkpoint. Throws
/// Error(kCorrupt) naming the file whose content does not match (and the newest intact checkpoint
/// in its folder), Error(kInvalidConfig) if the checkpoint belongs to a model with other tables or
/// shapes, naming the first difference. The model is then unusable.
RestoredState load_checkpoint(const std::string& checkpoint,
                              pipeline::Model& model,
                              std::int64_t rank = 0,
                              std::int64_t num_ranks = 1);

/// The files of one of its tables, for a job in which this is `table`.
std::vector<table::RowFile> row_files(const std::string& checkpoint,
                                      const Manifest& manifest,
                                      const Manifest::Table& saved,
                                      std::int32_t table);

/// All dense tensors, one after the other.
std::vector<float> read_dense(const std::string& checkpoint, const Manifest& manifest);

/// The lookups that `rank` had done for later steps; none if there is no file of them.
std::vector<pipeline::PendingLookup> read_pending(const std::string& checkpoint,
                                                  const Manifest& manifest,
                                                  std::int64_t rank);

/// As load_checkpoint, but without the rows: the tables stay empty.
Manifest load_dense_network(const std::string& checkpoint, pipeline::Model& model);

/// Reads the rows of one table file, block by block, then compares the checksum. Throws
/// Error(kCorrupt).
void read_rows(const std::string& checkpoint,
               const std::string& name,
               const Manifest& manifest,
               std::int64_t row_bytes,
               const std::function<void(std::span<const std::byte> rows)>& take);

/// Reads any file of a checkpoint in the same way.
void read_checked(const std::string& checkpoint,
                  const std::string& name,
                  const Manifest& manifest,
                  const std::function<void(std::span<const std::byte> bytes)>& take);

/// Paths of the published checkpoints under a run directory or its checkpoints/, oldest first; of
/// the directory itself if it is a checkpoint. URLs, if `directory` is one.
std::vector<std::string> checkpoint_paths(const std::string& directory);

/// The newest checkpoint of a directory (a run, its checkpoints/, or a checkpoint itself); "" if
/// there is none.
std::string find_checkpoint(const std::string& directory);

}  // namespace satrap::checkpoint
