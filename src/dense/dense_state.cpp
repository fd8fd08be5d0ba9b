#include "src/dense/dense_state.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "src/dense/loss_scale.h"

namespace satrap::dense {
namespace {

void check_size(std::span<const float> values, std::span<const float> wanted, const char* what) {
  SATRAP_CHECK(values.size() == wanted.size(), what, ": ", wanted.size(), " values wanted, got ",
               values.size());
}

}  // namespace

DenseState::DenseState(const Layout& layout,
                       const job::DenseOptimizerConfig& optimizer_config,
                       std::uint64_t seed,
                       Precision precision)
    : parameters(layout.num_parameters()),
      buffers(layout.num_buffer_values()),
      optimizer(optimizer_config, layout.num_parameters()),
      loss_scale(precision == Precision::kFp16 ? LossScaleRule::kNumParts : 0),
      layout_(layout) {
  if (loss_scale.size() > 0) loss_scale.data()[LossScaleRule::kFactor] = LossScaleRule::kStart;
  layout.initialize(seed, parameters.span(), buffers.span());
}

DenseNetwork::TrainingState DenseState::save_training_state() {
  const auto copy = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  const float* const updates = optimizer.num_updates();
  return {copy(parameters.span()), copy(optimizer.first()), copy(optimizer.second()),
          updates == nullptr ? 0.0 : static_cast<double>(*updates)};
}

void DenseState::load_parameters(std::span<const float> values) {
  check_size(values, parameters.span(), "dense parameters");
  std::ranges::copy(values, parameters.data());
}

void DenseState::load_training_state(const DenseNetwork::TrainingState& state) {
  const auto load = [](std::span<const float> values, std::span<float> to, const char* what) {
    if (to.empty()) return;
    check_size(values, to, what);
    std::ranges::copy(values, to.begin());
  };
  load_parameters(state.parameters);
  load(state.first, optimizer.first(), "first moments");
  load(state.second, optimizer.second(), "second moments");
  if (float* updates = optimizer.num_updates(); updates != nullptr) {
    *updates = static_cast<float>(state.num_updates);
  }
}

std::vector<DenseState::Tensor> DenseState::tensors() {
  std::vector<Tensor> all;
  for (const Parameter& p : layout_.parameters()) {
    all.push_back(
        {p.name, p.shape, {parameters.data() + p.offset, static_cast<std::size_t>(p.size())}});
  }
  for (const Buffer& b : layout_.buffers()) {
    all.push_back(
        {b.name, {b.size}, {buffers.data() + b.offset, static_cast<std::size_t>(b.size)}});
  }
  for (const Optimizer::State& s : optimizer.state()) {
    all.push_back({s.name, {std::ssize(s.values)}, s.values});
  }
  if (loss_scale.size() > 0) {
    all.push_back({DenseNetwork::kLossScaleTensor, {loss_scale.size()}, loss_scale.span()});
  }
  return all;
}

DenseNetwork::State DenseState::save() {
  DenseNetwork::State state;
  for (const Tensor& tensor : tensors()) {
    state.push_back({tensor.name, tensor.shape, {tensor.values.begin(), tensor.values.end()}});
  }
  return state;
}

void DenseState::load(const DenseNetwork::State& state) {
  const std::vector<Tensor> mine = tensors();
  SATRAP_CHECK(state.size() == mine.size(), state.size(), " dense tensors for ", mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    SATRAP_CHECK(state[i].name == mine[i].name, "dense tensor '", state[i].name, "' for '",
                 mine[i].name, "'");
    check_size(state[i].values, mine[i].values, mine[i].name.c_str());
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::ranges::copy(state[i].values, mine[i].values.begin());
  }
}

void DenseState::set_output_constants(std::span<const double> constants) {
  const auto& biases = layout_.output_biases();
  for (std::size_t l = 0; l < biases.size(); ++l) {
    if (!biases[l]) continue;
    const Parameter& bias = layout_.parameters()[*biases[l]];
    const auto size = static_cast<std::size_t>(bias.size());  // above 1 for the classes of a label
    SATRAP_CHECK(l + size <= constants.size(), constants.size(), " constants for output ", l);
    float* const values = parameters.data() + bias.offset;
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(constants[l + i]);
  }
}

}  // namespace satrap::dense
