#include "satrap/trainer/predict.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "satrap/data/open_rows.h"
#include "satrap/data/pass_progress.h"
#include "satrap/pipeline/scorer.h"
#include "src/trainer/loaded_model.h"

namespace satrap::trainer {

PredictedRows predict(const job::JobConfig& config,
                      const checkpoint::UsedCheckpoint& checkpoint,
                      const std::atomic<bool>* stop,
                      const std::vector<std::string>& keep,
                      const std::function<void(const PredictedLines& lines)>& take,
                      const pipeline::MakeNetwork& make_network) {
  LoadedModel loaded(config, checkpoint, make_network);
  const auto source = data::open_batches(loaded.data, loaded.transforms, data::Role::kPredict,
                                         {.seed = config.seed, .stop = stop, .kept = keep});
  pipeline::Scorer scorer(loaded.model);
  data::Batch batch;
  std::vector<float> predictions;
  const auto num_classes = static_cast<std::size_t>(
      std::max<std::int64_t>(1, loaded.data.schema().labels.front().source.classes));
  PredictedRows result;
  data::PassProgress progress("predicting", source->stats().total_bytes, /*stop=*/nullptr);
  while ((stop == nullptr || !stop->load()) && source->next(batch)) {
    const std::span<const float> scores = scorer.score(batch);
    predictions.assign(scores.begin(), scores.end());
    for (std::size_t i = 0; i < predictions.size(); ++i) {  // of every row, and label or class
      const bool usable = !std::isnan(batch.labels[i / num_classes]);
      if (!usable) predictions[i] = std::numeric_limits<float>::quiet_NaN();
    }
    take({predictions, batch.kept});
    progress.note(source->stats().bytes);
    result.rows += batch.num_examples;
  }
  result.bad_rows = source->stats().bad_rows;
  return result;
}

}  // namespace satrap::trainer
