#include "src/trainer/loaded_model.h"

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/continuation.h"
#include "satrap/core/error.h"
#include "satrap/core/resource.h"
#include "satrap/data/row_count.h"

namespace satrap::trainer {
namespace {

std::string existing_checkpoint(const std::string& directory) {
  std::string path = checkpoint::find_checkpoint(directory);
  if (path.empty()) throw Error(ErrorCode::kIo, concat("no checkpoint in '", directory, "'"));
  return path;
}

/// Checked before anything is loaded: inputs and outputs of the same shape may mean something else.
data::Dataset data_for(const checkpoint::UsedCheckpoint& checkpoint, const job::JobConfig& config) {
  checkpoint::check_predictions(checkpoint, config);
  return data::Dataset(config.data, {.folder = config.folder});
}

}  // namespace

job::JobConfig in_this_process(job::JobConfig config) {
  config.embedding = {};
  config.device = job::JobDevice::kCpu;
  config.why_not_on_gpu = "";
  data::choose_batch_size(config.data);
  // What a GPU's network was trained in may not be there; its parameters are fp32 always.
  using job::Precision;
  Precision& precision = config.train.precision;
  if (precision == Precision::kTf32 || (precision == Precision::kFp16 && !config.uses_graph())) {
    precision = Precision::kFp32;
  }
  return config;
}

LoadedModel::LoadedModel(const job::JobConfig& job,
                         const checkpoint::UsedCheckpoint& checkpoint,
                         const pipeline::MakeNetwork& make_network,
                         Rows rows)
    : config(in_this_process(job)),
      path(existing_checkpoint(checkpoint.path)),
      pool(config.train.threads > 0 ? config.train.threads : num_cpus()),
      data(data_for({path, checkpoint.accept_changed_config}, config)),
      transforms(
          data::FittedTransforms::from_json(checkpoint::read_transforms(path), data.schema())),
      cluster(config, {}),
      model(config, data.schema(), cluster, pool, make_network),
      manifest(rows == Rows::kAll ? checkpoint::load_checkpoint(path, model).manifest
                                  : checkpoint::load_dense_network(path, model)) {}

}  // namespace satrap::trainer
