#include "src/dense/graph_network.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "satrap/backend/recordings.h"
#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "src/dense/dense_state.h"
#include "src/dense/device_batch.h"
#include "src/dense/device_parameters.h"
#include "src/dense/field_columns.h"
#include "src/dense/libtorch.h"
#include "src/dense/loss_scale.h"
#include "src/dense/losses.h"
#include "src/dense/model.h"
#include "src/dense/onnx.h"
#include "src/dense/recorded_step.h"
#include "src/dense/reduce.h"
#include "src/dense/steps_in_flight.h"
#include "src/dense/torchscript.h"

namespace satrap::dense {
namespace {

/// A device of its own for a network that was given none.
struct OwnPlace {
  std::unique_ptr<backend::Device> device = backend::make_host_device();
  backend::Stream stream{*device};
};

class GraphNetwork : public DenseNetwork {
 public:
  GraphNetwork(const job::ModelConfig& model,
               const job::DenseOptimizerConfig& optimizer,
               Precision precision,
               const InputShape& shape,
               std::uint64_t seed,
               ThreadPool& pool,
               const DensePlace* place)
      : name_(model.type == job::ModelType::kTorchScript ? concat("model.path: '", model.path, "'")
                                                         : std::string("model.engine: graph")),
        shape_(place == nullptr ? without_device(shape) : shape),
        num_labels_(shape.num_labels()),
        num_outputs_(shape.num_outputs()),
        optimizer_config_(optimizer),
        precision_(precision),
        dropout_seed_(hash64(seed, 0xD50)),
        pool_(pool),
        own_(place == nullptr ? std::make_unique<OwnPlace>() : nullptr),
        device_(own_ ? *own_->device : place->device),
        stream_(own_ ? own_->stream : place->stream),
        times_(own_ ? nullptr : place->times),
        columns_(shape_),
        model_(make_model(model, shape, layout_)),
        state_(layout_, optimizer, seed, precision),
        parameters_(device_, stream_, state_),
        batch_(device_, stream_, shape_, columns_),
        steps_(device_),
        is_recorded_(model.type != job::ModelType::kTorchScript),
        recordings_(device_, stream_) {
    build();
    parameters_.push();
  }
  ~GraphNetwork() override {
    try {  // what is queued uses the members
      device_.use_on_this_thread();
      stream_.wait_until_idle();
    } catch (const std::exception& error) {
      log_error("the dense network: {}", error.what());
    }
  }

  void forward_backward(const DenseInput& input,
                        const DenseOutput& output,
                        const OnGradient& on_gradient) override;
  DenseResult finish() override { return steps_.finish(); }
  std::int64_t max_in_flight() const override { return device_.is_host() ? 1 : steps_.kMax; }
  void copy_flag(float* to, backend::Place place) override;
  void apply(std::int64_t step) override;
  void predict(const DenseInput& input, const FloatMatrix& probabilities) override;

  std::span<float> gradient() override { return parameters_.gradient_on_host(); }
  std::span<float> flag_and_first_bucket() override {
    return parameters_.flag_and_first_bucket_on_host();
  }
  FloatMatrix flag_and_gradient_on_device() override {
    return device_.is_host() ? FloatMatrix{} : parameters_.flag_and_gradient();
  }
  float gradient_scale() override {
    return clipping_factor(gradient(), optimizer_config_.clip_norm, pool_);
  }
  std::optional<LossScale> loss_scale() override;
  double learning_rate(std::int64_t step) const override {
    return optimizer_config_.lr * optimizer_config_.schedule.factor(step);
  }
  std::int64_t num_parameters() const override { return layout_.num_parameters(); }
  std::int64_t num_outputs() const override { return num_outputs_; }

  State save() override { return fetched().save(); }
  void load(const State& state) override {
    change([&] { state_.load(state); });
  }
  TrainingState save_training_state() override { return fetched().save_training_state(); }
  void load_training_state(const TrainingState& state) override {
    change([&] { state_.load_training_state(state); });
  }
  void load_parameters(std::span<const float> values) override {
    change([&] { state_.load_parameters(values); });
  }
  void set_base_rates(std::span<const double> rates) override {
    change([&] { state_.set_output_constants(Losses(shape_).constants_of(rates)); });
  }
  std::string to_onnx() override {
    fetched();
    return dense::to_onnx(*model_, shape_, layout_, state_.parameters.span(),
                          state_.buffers.span());
  }
  std::string to_torchscript() override {
    fetched();
    return dense::to_torchscript(*model_, layout_, state_.parameters.span(), state_.buffers.span());
  }

 private:
  static InputShape without_device(InputShape shape) {
    shape.device_columns.clear();
    return shape;
  }
  void build();
  ScriptFile script_of(TorchScriptText::Form form);
  DenseState& fetched() {
    parameters_.fetch();
    return state_;
  }
  template <class Change>
  void change(const Change& change_state) {
    parameters_.fetch();
    change_state();
    parameters_.push();
  }

  /// Queues compute(network, stream); what libtorch refuses becomes an error about the model.
  template <class Compute>
  void queue(backend::StreamRef stream, Compute compute);
  /// The same of a step, recorded if it can be. `arguments`: all that `compute` depends on.
  template <class Compute>
  void queue_step(std::span<const std::int64_t> arguments, Compute compute);
  ConstMatrix factors_of(const DenseInput& input);
  void hand_over(const OnGradient& on_gradient);

  const std::string name_;
  const InputShape shape_;
  const std::int64_t num_labels_, num_outputs_;
  const job::DenseOptimizerConfig optimizer_config_;
  const Precision precision_;
  const std::uint64_t dropout_seed_;
  ThreadPool& pool_;
  const std::unique_ptr<OwnPlace> own_;
  backend::Device& device_;
  const backend::Stream& stream_;
  backend::StreamTimes* const times_;
  const FieldColumns columns_;
  Layout layout_;
  const std::unique_ptr<Model> model_;
  DenseState state_;
  DeviceParameters parameters_;
  std::vector<TorchScriptText::Dropout> dropouts_;
  std::int64_t num_factors_ = 0;

  DeviceBatch batch_;
  StepsInFlight steps_;
  float rate_on_device_ = 0.0F;
  std::unique_ptr<TensorNetwork> network_;
  const bool is_recorded_;  // a user's module may do what cannot be recorded
  backend::Recordings recordings_;
};

ScriptFile GraphNetwork::script_of(TorchScriptText::Form form) {
  TorchScriptText script(layout_, form);
  const std::string narrowed = columns_.narrowed(script.pooled());
  if (narrowed != script.pooled()) script.set_pooled(script.let(narrowed));
  const std::string logits = model_->write(script);
  if (form == TorchScriptText::Form::kTraining) {
    dropouts_ = script.dropouts();
    num_factors_ = script.num_factors();
  }
  return script_file(script, logits, layout_, state_.parameters.span(), state_.buffers.span());
}

void GraphNetwork::build() {
  const int gpu = device_.libtorch_gpu();
  const Libtorch& library = gpu < 0 ? libtorch() : libtorch_for_cuda();
  try {
    network_ = library.make_network({.training = script_of(TorchScriptText::Form::kTraining),
                                     .evaluation = script_of(TorchScriptText::Form::kEvaluation),
                                     .label_weights = shape_.label_weights,
                                     .losses = shape_.losses,
                                     .num_classes = shape_.num_classes,
                                     .loss_shift = shape_.loss_shift,
                                     .optimizer = job::plain_optimizer(optimizer_config_),
                                     .clip_norm = optimizer_config_.clip_norm,
                                     .precision = precision_,
                                     .gpu = gpu,
                                     .memory = parameters_.memory()});
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::kInternal, concat(name_, ": ", error.what()));
  }
}

template <class Compute>
void GraphNetwork::queue(backend::StreamRef stream, Compute compute) {
  device_.run_in_order(stream, [this, stream, compute] {
    with_errors_of(name_, [&] { compute(*network_, stream.handle); });
  });
}

template <class Compute>
void GraphNetwork::queue_step(std::span<const std::int64_t> arguments, Compute compute) {
  if (!is_recorded_) return queue(stream_, compute);
  recordings_.run(std::as_bytes(arguments), [&](backend::StreamRef stream, bool is_recorded) {
    const WhileRecorded recorded(*network_, stream, is_recorded);
    queue(stream, compute);
  });
}

ConstMatrix GraphNetwork::factors_of(const DenseInput& input) {
  const std::int64_t rows = input.num_examples;
  float* const factors = batch_.factors(rows, num_factors_);
  const std::uint64_t seed = hash64(dropout_seed_, static_cast<std::uint64_t>(input.step));
  for (const TorchScriptText::Dropout& d : dropouts_) {
    device_.dropout_factors({Dropout(d.rate, hash64(seed, d.stream)), input.first_example, rows,
                             d.width, factors + d.first, num_factors_},
                            stream_);
  }
  return {factors, rows, num_factors_};
}

void GraphNetwork::forward_backward(const DenseInput& input,
                                    const DenseOutput& output,
                                    const OnGradient& on_gradient) {
  const std::int64_t n = input.num_examples;
  const std::int64_t loss_examples = input.loss_examples > 0 ? input.loss_examples : n;
  SATRAP_CHECK(loss_examples > 0, "a batch without examples has no mean loss");
  device_.use_on_this_thread();
  const backend::StreamTimes::Span span(times_, backend::StreamTimes::kNetwork);
  parameters_.begin_gradient();
  const bool is_there = input.pooled.place == backend::Place::kDevice;
  Staging& staging =
      steps_.begin(n, num_outputs_,
                   shape_.num_numeric + 2 * num_labels_ + (is_there ? 0 : columns_.device_width()));
  double* const result = batch_.result();
  if (n == 0) {
    parameters_.clear_gradient();
    device_.fill(result, 0, 2 * static_cast<std::int64_t>(sizeof(double)), stream_);
  } else {
    const Matrix dpooled = batch_.grad_pooled(output.grad_pooled, n);
    const TensorNetwork::Batch batch{.numeric = batch_.numeric(input.numeric, n, staging),
                                     .pooled = batch_.pooled(input.pooled, n, staging),
                                     .labels = batch_.labels(input.labels, n, staging),
                                     .weights = batch_.weights(input.weights, n, staging),
                                     .factors = factors_of(input),
                                     .probabilities = batch_.probabilities(n),
                                     .grad_pooled = dpooled,
                                     .loss_examples = static_cast<float>(loss_examples),
                                     .result = result};
    queue_step(arguments_of(batch), [batch](TensorNetwork& network, void* stream) {
      network.forward_backward(batch, stream);
    });
    if (!batch_.is_in_reach(output.grad_pooled)) {
      const Matrix to(
          host_values(output.grad_pooled, n, columns_.host_width(), "gradient of pooled rows"), n,
          columns_.host_width(), output.grad_pooled.stride);
      columns_.to_host(steps_.download(dpooled, stream_), to);
    }
  }
  steps_.queue_results(n == 0 ? nullptr : batch_.probabilities(n).data, output.probabilities,
                       result, parameters_.memory().flag, stream_);
  hand_over(on_gradient);
}

void GraphNetwork::hand_over(const OnGradient& on_gradient) {
  if (!on_gradient) return;
  gradient();
  const std::int64_t last = (num_parameters() - 1) / kGradientBucket * kGradientBucket;
  for (std::int64_t first = last; first > 0; first -= kGradientBucket) on_gradient(first);
}

void GraphNetwork::copy_flag(float* to, backend::Place place) {
  if (place != backend::Place::kDevice) {
    *to = parameters_.flag_on_host();
    return;
  }
  device_.use_on_this_thread();
  parameters_.give_back_gradient();
  device_.copy(to, parameters_.memory().flag, sizeof(float), stream_);
}

void GraphNetwork::apply(std::int64_t step) {
  device_.use_on_this_thread();
  const backend::StreamTimes::Span span(times_, backend::StreamTimes::kNetwork);
  parameters_.give_back_gradient();
  const auto rate = static_cast<float>(learning_rate(step));
  if (rate != rate_on_device_) steps_.upload(rate, parameters_.memory().learning_rate, stream_);
  rate_on_device_ = rate;
  queue_step({}, [](TensorNetwork& network, void* stream) { network.apply(stream); });
  steps_.queue_flag(parameters_.memory().flag, stream_);
}

std::optional<DenseNetwork::LossScale> GraphNetwork::loss_scale() {
  if (state_.loss_scale.size() == 0) return std::nullopt;
  parameters_.fetch_loss_scale();
  const float* const parts = state_.loss_scale.data();
  return LossScale{.factor = static_cast<double>(parts[LossScaleRule::kFactor]),
                   .skipped_steps = static_cast<std::int64_t>(parts[LossScaleRule::kSkippedSteps])};
}

void GraphNetwork::predict(const DenseInput& input, const FloatMatrix& probabilities) {
  const std::int64_t n = input.num_examples;
  if (n == 0) return;
  device_.use_on_this_thread();
  Staging& staging = steps_.begin_prediction(
      n * (shape_.num_numeric + columns_.device_width() + num_outputs_), stream_);
  const ConstMatrix given = batch_.numeric(input.numeric, n, staging);
  const ConstMatrix rows = batch_.pooled(input.pooled, n, staging);
  const Matrix out = batch_.probabilities(n);
  queue(stream_,
        [=](TensorNetwork& network, void* stream) { network.predict(given, rows, out, stream); });
  float* const to = host_values(probabilities, n, num_outputs_, "probabilities");
  std::copy_n(steps_.download(out, stream_), n * num_outputs_, to);
}

}  // namespace

std::unique_ptr<DenseNetwork> make_graph_network(const job::ModelConfig& model,
                                                 const job::DenseOptimizerConfig& optimizer,
                                                 Precision precision,
                                                 const InputShape& shape,
                                                 std::uint64_t seed,
                                                 ThreadPool& pool,
                                                 const DensePlace* place) {
  return std::make_unique<GraphNetwork>(model, optimizer, precision, shape, seed, pool, place);
}

}  // namespace satrap::dense
