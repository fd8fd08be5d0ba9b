#include "satrap/pipeline/load_job.h"

#include <cstdlib>
#include <string_view>

#include "satrap/backend/device.h"
#include "satrap/core/cpu.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/row_count.h"
#include "satrap/data/schema.h"
#include "satrap/dense/dense_network.h"
#include "satrap/dense/precision.h"
#include "satrap/job/config_place.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/read_job.h"
#include "satrap/pipeline/input_shape.h"

namespace satrap::pipeline {
namespace {

/// Replaces `auto` by the precision for this machine. A user's module computes as it is written.
void resolve_precision(job::JobConfig& config) {
  if (config.train.precision != job::Precision::kAuto) return;
  const bool is_native = config.model.type != job::ModelType::kTorchScript &&
                         config.model.type != job::ModelType::kPython && !config.uses_graph();
  config.train.precision =
      is_native ? dense::fastest_precision(inspect_cpu()) : job::Precision::kFp32;
}

void check_model(const job::JobConfig& config) {
  const data::Schema schema = data::resolve_schema(config.data);
  dense::check_model(config.model,
                     input_shape(schema, job::embedding_specs(config, schema), config.model));
}

/// Whether satrap-run has started loaders.
bool has_loaders() {
  const char* const number = std::getenv("SATRAP_LOADERS");
  return number != nullptr && std::string_view(number) != "0";
}

void require_one_process(const job::ClusterConfig& cluster) {
  if (cluster.num_ranks <= 1 && cluster.num_shards == 0) return;
  throw Error(ErrorCode::kInvalidConfig,
              concat("`python -m satrap` trains in one process, and the environment "
                     "of this one says ",
                     cluster.num_ranks, " ranks and ", cluster.num_shards,
                     " shards; start it without satrap-run or torchrun, or write a loop with "
                     "satrap.Trainer, which several ranks run (docs/python.md)"));
}

}  // namespace

job::JobConfig load_job_of_program(const std::string& path, std::vector<std::string> overrides) {
  overrides.emplace_back("model=python");
  ConfigOrigins origins;
  const job::ClusterConfig cluster = job::ClusterConfig::from_environment();
  // Shards are started for rows to live on them, and loaders to be read from; whoever wants
  // something else says so.
  if (cluster.num_shards > 0) overrides.insert(overrides.begin(), "embedding.store=ps");
  if (has_loaders()) overrides.insert(overrides.begin(), "data.loaders.store=job");
  job::JobConfig config = job::read_job(path, overrides, origins, cluster);
  if (origins.contains("dense_optimizer")) {
    log_info("{}: dense_optimizer is not used: the program has its own",
             origins.at("dense_optimizer"));
  }
  config.dense_optimizer = {};
  job::choose_device(config, origins, /*has_gpu=*/false, cluster);
  resolve_precision(config);
  data::choose_batch_size(config.data);
  return config;
}

job::JobConfig load_job(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigOrigins origins;
  const job::ClusterConfig cluster = job::ClusterConfig::from_environment();
  job::JobConfig config = job::read_job(path, overrides, origins, cluster);
  if (config.device == job::JobDevice::kAuto) {  // else no driver is asked
    job::choose_device(config, origins, backend::why_no_cuda().empty(), cluster);
  }
  resolve_precision(config);
  data::choose_batch_size(config.data);
  if (config.model.type == job::ModelType::kPython) {
    require_one_process(cluster);
  } else {
    job::with_place(origins, [&] { check_model(config); });
  }
  return config;
}

}  // namespace satrap::pipeline
