#pragma once

#include <string>
#include <vector>

#include "checkpoint_format.h"
#include "embedding_stage.h"
#include "model.h"

namespace satrap::trainer {

/// Where a job continues, and what its model does not hold.
struct RestoredState {
  Manifest manifest;
  std::vector<PendingLookup> pending;
};

/// The fitted transforms of a checkpoint (JSON); needed before the model can be built.
std::string read_transforms(const std::string& checkpoint);

/// Fills a freshly built model. Throws Error(kCorrupt) naming the file whose content does not match
/// (and the newest intact checkpoint beside it), Error(kInvalidConfig) if the checkpoint belongs to
/// a model of other tables or shapes, naming the first difference. The model is then unusable.
RestoredState load_checkpoint(const std::string& checkpoint, Model& model);

/// Paths of the published checkpoints under a run directory or its checkpoints/, oldest first; of
/// the directory itself if it is a checkpoint.
std::vector<std::string> checkpoint_paths(const std::string& directory);

/// The newest checkpoint of a directory (a run, its checkpoints/, or a checkpoint itself); "" if
/// there is none.
std::string find_checkpoint(const std::string& directory);

}  // namespace satrap::trainer
