#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/batch_source.h"
#include "satrap/job/job_config.h"

namespace satrap::checkpoint {

/// The facts that a continuing run needs of the configuration that the checkpoint was trained with.
struct Continuation {
  /// The next steps get the same batches and versions of rows as without the interruption: lookups
  /// already made for them remain valid.
  bool has_same_input = true;

  std::int64_t batch_size = 0;  // examples of a step until now
};

/// Compares the configuration with the checkpoint's and logs the changes. Throws
/// Error(kInvalidConfig) with a line for each change that the checkpoint does not allow. A
/// checkpoint of an older version may have no configuration: then that of its run directory counts.
/// If there is none either, nothing counts as changed, and shapes are checked during loading.
Continuation compare_with_checkpoint(const std::string& checkpoint, const job::JobConfig& config);

/// For a use of a checkpoint's network that does not continue the run: throws
/// Error(kInvalidConfig), naming both, unless the configuration's labels have the names of the
/// checkpoint's, in the same order. A single label that is not in `data.schema.labels`, on either
/// side, has only a column's name, which does not count. A configuration that cannot be found or
/// understood is treated as in compare_with_checkpoint. `advice` ends the message.
void check_labels(const std::string& checkpoint,
                  const job::JobConfig& config,
                  const std::string& advice = "");

/// A checkpoint whose model is used with a configuration: it predicts, or is exported.
struct UsedCheckpoint {
  std::string path;
  bool accept_changed_config = false;  // see check_predictions
  std::string url = "";                // of which `path` is a copy; "": it is none

  const std::string& name() const { return url.empty() ? path : url; }
};

/// Throws Error(kInvalidConfig) with a line for each key of the configuration under which the
/// checkpoint's model would get other inputs, or compute something else, than it was trained for:
/// columns, types, transforms, tables, pooling, the network, the weights of ids without a row. With
/// `accept_changed_config` these are warnings, unless rows or network do not fit. Labels are
/// compared as by check_labels, always. Other changes of `data.schema` describe another file and
/// are logged; the rest says nothing about the model.
void check_predictions(const UsedCheckpoint& checkpoint, const job::JobConfig& config);

/// The data position, if a step now has `after` examples instead of `before`.
data::DataPosition with_batch_size(data::DataPosition position,
                                   std::int64_t before,
                                   std::int64_t after);

}  // namespace satrap::checkpoint
