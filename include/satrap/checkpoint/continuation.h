#pragma once

#include <cstdint>
#include <string>

#include "satrap/data/batch_source.h"
#include "satrap/job/job_config.h"

namespace satrap::checkpoint {

/// What a run that continues from a checkpoint has to know of the configuration it was trained
/// with.
struct Continuation {
  /// The next steps get the batches, and the versions of the rows, that they would have got without
  /// the interruption: lookups that were already made for them count.
  bool has_same_input = true;

  std::int64_t batch_size = 0;  // rows of a step until now
};

/// Compares the configuration with the checkpoint's and logs what has changed. Throws
/// Error(kInvalidConfig) with a line for each change that the checkpoint does not allow. The
/// checkpoint's is the one in it, or that of its run directory for one of an older version; where
/// there is none either, all is taken for unchanged, and shapes are checked when it is loaded.
Continuation compare_with_checkpoint(const std::string& checkpoint, const job::JobConfig& config);

/// For whoever uses a checkpoint's network without continuing the run: throws
/// Error(kInvalidConfig), naming both, unless the configuration's labels have the names of the
/// checkpoint's, in their order. The name of a single label not given by `data.schema.labels`, here
/// or there, is only that of a column and does not count. A configuration that cannot be found or
/// understood is taken as by compare_with_checkpoint. `advice` ends the message.
void check_labels(const std::string& checkpoint,
                  const job::JobConfig& config,
                  const std::string& advice = "");

/// Where the data stood, if a step now has `after` rows instead of `before`.
data::DataPosition with_batch_size(data::DataPosition position,
                                   std::int64_t before,
                                   std::int64_t after);

}  // namespace satrap::checkpoint
