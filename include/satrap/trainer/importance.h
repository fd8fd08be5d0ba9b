#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/checkpoint/continuation.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"
#include "satrap/trainer/metrics.h"

namespace satrap::trainer {

/// File of a run, in its directory.
inline constexpr const char* kRunImportance = "importance.json";

/// A mean over repetitions, with the half-width of its 95 % interval (Student's t). It is the
/// interval of other permutations of the same rows, not of other rows. NaN: undefined.
struct MeanInterval {
  double mean = 0.0, half_width = 0.0;
};

/// A metric that is worse if it rises, or if it falls.
struct WorseMetric {
  std::string_view name;
  bool rises;
  double Metrics::* value;
};

/// How much worse a model predicts if it does not know an input: a feature, or a number with its
/// indicator of missing values.
struct InputImportance {
  std::string input;
  std::array<MeanInterval, 2> worse;  // by each of Importance::metrics
};

struct Importance {
  static constexpr std::int64_t kRepetitions = 5;
  using Pair = std::array<WorseMetric, 2>;

  std::int64_t examples = 0;                 // that count for the first label
  Pair metrics = {};                         // its loss and another: see metrics_of_importance
  std::vector<InputImportance> inputs = {};  // by how much the first is worse, equal ones by name
};

/// Logloss and AUC of bce, RMSE and MAE of mse, logloss and accuracy of softmax.
Importance::Pair metrics_of_importance(job::Loss loss);

/// Permutation importance (Breiman 2001, "Random forests", section 10) of each input of a
/// checkpoint's model for the first label, on the job's evaluation data. Rows are taken in buffers
/// of at least kBufferRows, if there are so many. In each the input is exchanged among the rows, by
/// the job's seed, and all are scored again. Numbers are means over the buffers, by their weight;
/// so AUC and RMSE are those within a buffer. Holds one buffer, and scores each row 1 +
/// kRepetitions times the number of inputs. Threads change no bit.
///
/// Nothing if `stop`, which may be null, is set meanwhile: then `inputs` is empty. `make_network`:
/// as in TrainOptions. Throws as
/// evaluate(), and Error(kInvalidData) if no row can be used.
Importance permutation_importance(const job::JobConfig& config,
                                  const checkpoint::UsedCheckpoint& checkpoint,
                                  const std::atomic<bool>* stop,
                                  const pipeline::MakeNetwork& make_network = {});

}  // namespace satrap::trainer
