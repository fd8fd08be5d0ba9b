#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include "satrap/app/init_job.h"
#include "satrap/app/trained_model.h"
#include "satrap/core/cpu.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/data/parquet_writer.h"
#include "satrap/data/schema.h"
#include "satrap/dense/precision.h"
#include "satrap/job/cluster_config.h"
#include "satrap/pipeline/load_job.h"
#include "src/engine/bindings.h"
#include "src/engine/interruptible.h"
#include "src/engine/watched_run.h"

namespace nb = nanobind;

namespace satrap::engine {
namespace {

using Words = std::vector<std::string>;
using Predictions = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

/// The process may have a libtorch already, and another one must not come to it.
void require_no_libtorch(const job::JobConfig& config) {
  const auto refuse = [](const std::string& key) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(key,
                       ": is computed by libtorch, which the Python package does not load; "
                       "use the command satrap, or leave the key out"));
  };
  if (config.model.type == job::ModelType::kTorchScript) refuse("model.type: torchscript");
  if (config.uses_graph()) refuse("model.engine: graph");
  if (config.train.precision == job::Precision::kBf16 &&
      dense::fastest_precision(inspect_cpu()) != job::Precision::kBf16) {
    refuse("train.precision: bf16 on this CPU");
  }
}

std::unique_ptr<WatchedRun> start_run(const std::string& path,
                                      const Words& overrides,
                                      bool is_shown) {
  const job::ClusterConfig cluster = job::ClusterConfig::from_environment();
  if (cluster.num_ranks > 1 || cluster.num_shards > 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("satrap.fit trains in one process, and the environment of this one says ",
                       cluster.num_ranks, " ranks and ", cluster.num_shards,
                       " shards; start the program without satrap-run or torchrun"));
  }
  const job::JobConfig config = pipeline::load_job(path, overrides);
  if (config.is_on_gpu()) {
    throw Error(ErrorCode::kInvalidConfig,
                "device: satrap.fit trains on the CPU so far; the command satrap train uses GPUs");
  }
  require_no_libtorch(config);
  return std::make_unique<WatchedRun>(config, is_shown);
}

/// Phase, step, examples, share of the whole (negative: unknown), loss, and the name and value of
/// the metric beside it ("": none yet).
std::tuple<std::string, std::int64_t, std::int64_t, double, double, std::string, double>
progress_of(const WatchedRun& run) {
  const trainer::LiveProgress::Trained trained = run.live().trained();
  const auto report = run.newest_report();
  if (!report) {
    return {run.live().phase_name(), trained.step, trained.examples, trained.share, 0.0, "", 0.0};
  }
  const trainer::NamedMetric& metric = trainer::metrics_of(report->loss_of_label).front();
  return {run.live().phase_name(),
          trained.step,
          trained.examples,
          trained.share,
          report->window.loss,
          std::string(metric.name),
          report->window.*metric.value};
}

/// All batches of a capsule of Arrow's C stream interface.
void append(data::ParquetWriter& writer, const nb::capsule& stream) {
  auto* const batches = static_cast<ArrowArrayStream*>(stream.data("arrow_array_stream"));
  if (batches == nullptr) throw nb::python_error();
  {
    const nb::gil_scoped_release released;
    writer.begin(*batches);
  }
  while (true) {
    {
      const nb::gil_scoped_release released;
      if (!writer.write_batch()) return;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void open_model(app::TrainedModel* memory, const std::string& path) {
  new (memory) app::TrainedModel(path);
  try {
    job::JobConfig config = memory->config();
    config.device = job::JobDevice::kCpu;  // where it predicts, whatever trained it
    require_no_libtorch(config);
  } catch (...) {
    memory->~TrainedModel();
    throw;
  }
}

std::string evaluate(const app::TrainedModel& model, const Words& data) {
  std::string json;
  do_interruptibly(
      [&](const std::atomic<bool>& stop) { json = model.evaluate(data, stop).dump(); });
  return json;
}

/// The names of outputs.
Words labels(const app::TrainedModel& model) {
  const data::Schema schema = data::resolve_schema(model.config().data);
  const data::LabelConfig& first = schema.labels.front().source;
  if (first.has_classes()) return first.class_names();
  Words names;
  for (const data::NamedLabelConfig& label : schema.labels) names.push_back(label.name);
  return names;
}

/// [rows, outputs].
Predictions predict(const app::TrainedModel& model, const Words& data) {
  auto all = std::make_unique<std::vector<float>>();
  do_interruptibly([&](const std::atomic<bool>& stop) {
    model.predict(data, stop, [&](const trainer::PredictedLines& lines) {
      all->insert(all->end(), lines.predictions.begin(), lines.predictions.end());
    });
  });
  const std::size_t columns = labels(model).size();
  const std::size_t rows = all->size() / columns;
  float* const values = all->data();
  const nb::capsule owner(
      all.release(), [](void* owned) noexcept { delete static_cast<std::vector<float>*>(owned); });
  return Predictions(values, {rows, columns}, owner);
}

std::string init(const Words& data, const std::string& label, const std::string& config) {
  std::string notes;
  do_interruptibly([&](const std::atomic<bool>&) {
    notes = app::init_job({.data = data, .label = label, .config = config}, /*overwrite=*/true);
  });
  return notes;
}

}  // namespace

void bind_models(nb::module_& m) {
  m.def("init_job", &init);
  m.def("default_config", &app::default_config);
  nb::class_<data::ParquetWriter>(m, "ParquetWriter")
      .def("append", &append)
      .def("finish", &data::ParquetWriter::finish, nb::call_guard<nb::gil_scoped_release>());
  m.def("write_parquet", &data::write_parquet);
  nb::class_<WatchedRun>(m, "WatchedRun")
      .def(
          "wait",
          [](WatchedRun& run, std::int64_t time_ms) {
            return run.wait(std::chrono::milliseconds(time_ms));
          },
          nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &WatchedRun::stop)
      .def("close", &WatchedRun::close, nb::call_guard<nb::gil_scoped_release>())
      .def("progress", &progress_of)
      .def_prop_ro("words", &WatchedRun::words)
      .def("result", [](WatchedRun& run) {
        const trainer::TrainOutcome* outcome = nullptr;
        {
          const nb::gil_scoped_release released;
          outcome = &run.result();
        }
        return std::tuple(outcome->finished, outcome->last_checkpoint);
      });
  m.def("start_run", &start_run);
  m.def("set_log_level", [](const std::string& word) { set_log_level(parse_log_level(word)); });
  nb::class_<app::TrainedModel>(m, "TrainedModel")
      .def("__init__", &open_model)
      .def_prop_ro("checkpoint", &app::TrainedModel::checkpoint)
      .def_prop_ro("labels", &labels)
      .def("evaluate", &evaluate)
      .def("predict", &predict)
      .def(
          "save",
          [](const app::TrainedModel& model, const std::string& folder, bool overwrite) {
            model.save(folder, {.overwrite = overwrite});
          },
          nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace satrap::engine
