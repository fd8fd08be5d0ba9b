// satrap._engine, the compiled part of the package in python/satrap, which alone calls it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "satrap/core/error.h"
#include "satrap/core/float_matrix.h"
#include "satrap/core/text.h"
#include "satrap/data/schema.h"
#include "satrap/embedding/feature_layout.h"
#include "satrap/job/cluster_config.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/job_config.h"
#include "satrap/job/label_loss.h"
#include "satrap/pipeline/input_shape.h"
#include "satrap/pipeline/load_job.h"
#include "src/engine/bindings.h"
#include "src/engine/run.h"

namespace nb = nanobind;

namespace satrap::engine {
namespace {

using dense::NetworkCall;
using Vector = nb::ndarray<nb::pytorch, float, nb::ndim<1>, nb::device::cpu>;
using Tensor = nb::ndarray<nb::pytorch, float, nb::ndim<2>, nb::device::cpu>;

/// A tensor on the same memory, which refers to `owner` for as long as anything uses the memory.
Tensor tensor_on(const ConstFloatMatrix& matrix, const nb::handle& owner) {
  const std::size_t shape[] = {static_cast<std::size_t>(matrix.rows),
                               static_cast<std::size_t>(matrix.cols)};
  const std::int64_t strides[] = {matrix.stride, 1};
  return {const_cast<void*>(matrix.data), 2, shape, owner, strides};
}

/// A job, read and checked for a network of the program.
struct Job {
  Job(const std::string& path, std::vector<std::string> overrides)
      : Job(pipeline::load_job_of_program(path, std::move(overrides))) {}
  explicit Job(job::JobConfig of_command)
      : config(std::move(of_command)),
        schema(data::resolve_schema(config.data)),
        specs(job::embedding_specs(config, schema)),
        shape(pipeline::input_shape(schema, specs, config.model)),
        layout(specs.features, specs.tables) {}

  /// For each feature its name, first column in the pooled rows, columns of a vector, vectors of a
  /// sequence (0: it is a bag), first column of its mask in the numbers.
  using Feature = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::vector<Feature> features() const {
    std::vector<Feature> all;
    for (const embedding::PlacedFeature& feature : layout.features) {
      const bool is_sequence = feature.spec.pooling == Pooling::kSequence;
      all.emplace_back(feature.spec.name, feature.column, feature.vector_width,
                       is_sequence ? feature.spec.max_length : 0,
                       schema.num_numeric_outputs() + feature.mask_column);
    }
    return all;
  }

  std::vector<std::string> labels() const {
    std::vector<std::string> names;
    for (const data::NamedLabelConfig& label : schema.labels) names.push_back(label.name);
    return names;
  }

  /// The words of model.loss, one for each label.
  std::vector<std::string> losses() const {
    std::vector<std::string> words;
    for (const data::NamedLabelConfig& label : schema.labels) {
      words.emplace_back(word_of(job::loss_of(config.model, label.source), job::kLosses));
    }
    return words;
  }

  /// The word of dense_optimizer.type, and all numbers by name.
  std::tuple<std::string, std::map<std::string, double>> dense_optimizer() const {
    const job::DenseOptimizerConfig& optimizer = config.dense_optimizer;
    return {std::string(word_of(optimizer.type, job::kDenseOptimizers)),
            std::map<std::string, double>{{"lr", optimizer.lr},
                                          {"momentum", optimizer.momentum},
                                          {"weight_decay", optimizer.weight_decay},
                                          {"beta1", optimizer.beta1},
                                          {"beta2", optimizer.beta2},
                                          {"eps", optimizer.eps},
                                          {"initial_accumulator", optimizer.initial_accumulator},
                                          {"clip_norm", optimizer.clip_norm}}};
  }

  double learning_rate(std::int64_t step) const {
    return config.dense_optimizer.lr * config.dense_optimizer.schedule.factor(step);
  }

  job::ClusterConfig cluster = job::ClusterConfig::from_environment();
  job::JobConfig config;
  data::Schema schema;
  job::EmbeddingSpecs specs;
  dense::InputShape shape;
  embedding::FeatureLayout layout;
};

/// What satrap.errors calls it.
const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidConfig:
      return "ConfigError";
    case ErrorCode::kInvalidData:
      return "DataError";
    case ErrorCode::kDiverged:
      return "DivergedError";
    default:
      return "Error";
  }
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kClosedPipe) return PyErr_SetString(PyExc_BrokenPipeError, e.what());
    const nb::object type = nb::module_::import_("satrap.errors").attr(name_of(e.code()));
    PyErr_SetString(type.ptr(), e.what());
  }
}

/// Waits without the GIL, and looks for signals now and then. None: no call will come any more.
NetworkCall* next_call(Run& run) {
  constexpr std::chrono::milliseconds kBetweenSignals(50);
  while (true) {
    NetworkCall* call = nullptr;
    {
      const nb::gil_scoped_release released;
      call = run.next_call(kBetweenSignals);
    }
    if (call != nullptr || run.has_ended()) return call;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void bind_job(nb::module_& m) {
  nb::class_<Job>(m, "Job")
      .def(nb::init<const std::string&, std::vector<std::string>>())
      .def("features", &Job::features)
      .def("labels", &Job::labels)
      .def_prop_ro("yaml", [](const Job& job) { return dump_config(job.config); })
      .def_prop_ro("run_dir", [](const Job& job) { return job.config.run_dir; })
      .def_prop_ro("seed", [](const Job& job) { return job.config.seed; })
      .def_prop_ro("model_path", [](const Job& job) { return job.config.model.path; })
      .def_prop_ro("dense_optimizer", &Job::dense_optimizer)
      .def("learning_rate", &Job::learning_rate)
      .def_prop_ro("numeric_names", [](const Job& job) { return job.schema.numeric_names; })
      .def_prop_ro("input_widths",
                   [](const Job& job) {
                     return std::tuple(job.schema.num_numeric_outputs() + job.layout.mask_width,
                                       job.layout.output_width);
                   })
      .def_prop_ro("pooled_width", [](const Job& job) { return job.layout.output_width; })
      .def_prop_ro("label_weights", [](const Job& job) { return job.shape.label_weights; })
      .def("losses", &Job::losses)
      .def_prop_ro("num_outputs", [](const Job& job) { return job.shape.num_outputs(); })
      .def_prop_ro("loss_shift", [](const Job& job) { return job.shape.loss_shift; })
      .def_prop_ro("rank", [](const Job& job) { return job.cluster.rank; })
      .def_prop_ro("num_ranks", [](const Job& job) { return job.cluster.num_ranks; })
      .def_prop_ro("has_evaluation", [](const Job& job) { return job.config.data.has_eval(); });
}

void bind_call(nb::module_& m) {
  nb::enum_<NetworkCall::Kind>(m, "Kind")
      .value("MAKE", NetworkCall::Kind::kMake)
      .value("STEP", NetworkCall::Kind::kStep)
      .value("APPLY", NetworkCall::Kind::kApply)
      .value("FORGET", NetworkCall::Kind::kForget)
      .value("PREDICT", NetworkCall::Kind::kPredict)
      .value("SAVE", NetworkCall::Kind::kSave)
      .value("LOAD", NetworkCall::Kind::kLoad)
      .value("EXPORT", NetworkCall::Kind::kExport);
  const auto input = [](ConstFloatMatrix dense::DenseInput::* matrix) {
    return [matrix](const NetworkCall& call, const nb::handle& owner) {
      return tensor_on(call.input.*matrix, owner);
    };
  };
  nb::class_<NetworkCall>(m, "Call")
      .def_ro("kind", &NetworkCall::kind)
      .def_prop_ro("step", [](const NetworkCall& call) { return call.input.step; })
      .def_prop_ro("num_examples", [](const NetworkCall& call) { return call.input.num_examples; })
      .def_prop_ro("share",
                   [](const NetworkCall& call) {
                     const auto n = static_cast<double>(call.input.num_examples);
                     return n / static_cast<double>(
                                    std::max(call.input.num_examples, call.input.loss_examples));
                   })
      .def_prop_ro("trains",
                   [](const NetworkCall& call) { return call.kind == NetworkCall::Kind::kStep; })
      .def_prop_ro("has_weights",
                   [](const NetworkCall& call) { return call.input.weights.data != nullptr; })
      .def("numeric", input(&dense::DenseInput::numeric))
      .def("pooled", input(&dense::DenseInput::pooled))
      .def("labels", input(&dense::DenseInput::labels))
      .def("weights", input(&dense::DenseInput::weights))
      .def("probabilities",
           [](const NetworkCall& call, const nb::handle& owner) {
             return tensor_on(call.probabilities, owner);
           })
      .def("gradient", [](const NetworkCall& call,
                          const nb::handle& owner) { return tensor_on(call.grad_pooled, owner); })
      .def("set_result",
           [](NetworkCall& call, double loss, double grad_norm, bool is_finite) {
             call.result = {.loss = loss, .grad_norm = grad_norm, .finite = is_finite};
           })
      .def_rw("num_parameters", &NetworkCall::num_parameters)
      .def_prop_ro("format", [](const NetworkCall& call) { return std::string(call.format); })
      .def_prop_rw(
          "state",
          [](const NetworkCall& call) { return nb::bytes(call.state.data(), call.state.size()); },
          [](NetworkCall& call, const nb::bytes& state) {
            call.state.assign(state.c_str(), state.size());
          });
}

void begin_run(Run* memory,
               const Job& job,
               std::int64_t num_parameters,
               std::int64_t num_summed,
               bool resume,
               const std::string& resume_from,
               bool overwrite,
               bool accept_changed_data) {
  trainer::TrainOptions options;
  options.resume = resume;
  options.resume_from = resume_from;
  options.overwrite = overwrite;
  options.accept_changed_data = accept_changed_data;
  new (memory) Run(job.config, std::move(options), num_parameters, num_summed);
}

/// `job`: None, or what takes the place of the checkpoint's own.
void begin_command(Run* memory, std::vector<std::string> words, const Job* job) {
  std::optional<job::JobConfig> config;
  if (job != nullptr) config = job->config;
  new (memory) Run(std::move(words), std::move(config));
}

void bind_run(nb::module_& m) {
  nb::class_<Run>(m, "Run")
      .def("__init__", &begin_run)
      .def("__init__", &begin_command, nb::arg("words"), nb::arg("job").none())
      .def_prop_ro("job", [](const Run& run) { return Job(run.config()); })
      .def_prop_ro("status", &Run::status)
      .def_prop_ro("evaluation", &Run::evaluation)
      .def("next_call", &next_call, nb::rv_policy::reference)
      .def("answer", &Run::answer, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Run::stop)
      .def("decline_steps", &Run::decline_steps)
      .def("fail", &Run::fail)
      .def("close", &Run::close, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("run_dir", &Run::run_dir)
      .def_prop_ro("words", &Run::words)
      .def("summed",
           [](Run& run, const nb::handle& owner) {
             const std::span<float> values = run.summed();
             const std::size_t shape[] = {values.size()};
             return Vector(values.data(), 1, shape, owner);
           })
      .def("result", [](Run& run) {
        const trainer::TrainOutcome* outcome = nullptr;
        {
          const nb::gil_scoped_release released;
          outcome = &run.result();
        }
        return std::tuple(outcome->finished, outcome->last_checkpoint);
      });
}

}  // namespace
}  // namespace satrap::engine

NB_MODULE(_engine, m) {
  nb::set_leak_warnings(false);  // a program may end while a job is at hand
  nb::register_exception_translator(&satrap::engine::translate);
  m.def("printable", [](const std::string& text) { return satrap::printable(text); });
  satrap::engine::bind_job(m);
  satrap::engine::bind_call(m);
  satrap::engine::bind_run(m);
  satrap::engine::bind_models(m);
}
