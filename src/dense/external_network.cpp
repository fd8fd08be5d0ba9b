#include "satrap/dense/external_network.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "satrap/core/error.h"
#include "src/dense/ops.h"

namespace satrap::dense {
namespace {

constexpr std::int64_t kPiece = DenseNetwork::kPieceExamples;

// Places in the flag.
constexpr std::size_t kFlag = 0, kLossShare = 2;

std::int64_t num_pieces(std::int64_t rows) { return (rows + kPiece - 1) / kPiece; }

[[noreturn]] void refuse(const char* what) {
  throw Error(ErrorCode::kInternal, concat(what, " of a network that a program computes"));
}

}  // namespace

// ------------------------------------------------------------------------------ NetworkCalls

void NetworkCalls::throw_if_refused(NetworkCall::Kind kind) const {
  if (failure_) {
    throw Error(ErrorCode::kInternal, concat("the program that computes the network: ", *failure_));
  }
  if (is_declined_ && kind == NetworkCall::Kind::kStep) throw StepDeclined();
}

void NetworkCalls::make(NetworkCall& call) {
  const MutexLock lock(mutex_);
  throw_if_refused(call.kind);
  call_ = &call;
  changed_.notify_all();
  while (call_ == &call) changed_.wait(mutex_);  // decline_steps and fail take it back
  throw_if_refused(call.kind);
}

void NetworkCalls::end() {
  const MutexLock lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

NetworkCall* NetworkCalls::wait_until(std::chrono::steady_clock::time_point time) {
  const MutexLock lock(mutex_);
  while (call_ == nullptr && !has_ended_ && changed_.wait_until(mutex_, time)) continue;
  return call_;
}

void NetworkCalls::answer() {
  const MutexLock lock(mutex_);
  call_ = nullptr;
  changed_.notify_all();
}

bool NetworkCalls::has_ended() const {
  const MutexLock lock(mutex_);
  return has_ended_;
}

void NetworkCalls::decline_steps() {
  const MutexLock lock(mutex_);
  is_declined_ = true;
  if (call_ != nullptr && call_->kind == NetworkCall::Kind::kStep) call_ = nullptr;
  changed_.notify_all();
}

void NetworkCalls::fail(const std::string& why) {
  const MutexLock lock(mutex_);
  if (!failure_) failure_ = why;
  call_ = nullptr;
  changed_.notify_all();
}

// --------------------------------------------------------------------------- ExternalNetwork

ExternalNetwork::ExternalNetwork(NetworkCalls& calls,
                                 const InputShape& shape,
                                 std::int64_t num_parameters,
                                 std::span<float> summed,
                                 ThreadPool& pool)
    : calls_(calls),
      num_outputs_(shape.num_outputs()),
      pooled_width_(shape.pooled_width()),
      num_parameters_(num_parameters),
      pool_(pool),
      summed_(summed) {
  SATRAP_CHECK(std::ssize(summed) >= kFlagFloats, "memory for the flag");
}

std::span<float> ExternalNetwork::flag_and_first_bucket() {
  const std::size_t size = static_cast<std::size_t>(kFlagFloats + kGradientBucket);
  return summed_.first(std::min(summed_.size(), size));
}

void ExternalNetwork::fill_zeros(const FloatMatrix& gradient, std::int64_t rows) {
  float* const to = host_values(gradient, rows, pooled_width_, "gradient of pooled rows");
  pool_.parallel_for(num_pieces(rows), [&](std::int64_t piece) {
    const std::int64_t end = std::min(rows, (piece + 1) * kPiece);
    for (std::int64_t row = piece * kPiece; row < end; ++row) {
      std::fill_n(to + row * gradient.stride, pooled_width_, 0.0F);
    }
  });
}

bool ExternalNetwork::is_finite(const FloatMatrix& gradient, std::int64_t rows) {
  const float* const from = host_values(gradient, rows, pooled_width_, "gradient of pooled rows");
  is_finite_.assign(static_cast<std::size_t>(num_pieces(rows)), 0);
  pool_.parallel_for(num_pieces(rows), [&](std::int64_t piece) {
    const std::int64_t first = piece * kPiece;
    const ConstMatrix part(from + first * gradient.stride, std::min(kPiece, rows - first),
                           pooled_width_, gradient.stride);
    is_finite_[static_cast<std::size_t>(piece)] = all_finite(part) ? 1 : 0;
  });
  return std::ranges::count(is_finite_, 0) == 0;
}

void ExternalNetwork::forward_backward(const DenseInput& input,
                                       const DenseOutput& output,
                                       const OnGradient&) {
  const std::int64_t n = input.num_examples, all = std::max(n, input.loss_examples);
  SATRAP_CHECK(all > 0, "a batch without examples has no mean loss");
  std::ranges::fill(summed_.first(static_cast<std::size_t>(kFlagFloats)), 0.0F);
  fill_zeros(output.grad_pooled, n);
  std::fill_n(host_values(output.probabilities, n, num_outputs_, "probabilities"), n * num_outputs_,
              std::numeric_limits<float>::quiet_NaN());
  NetworkCall call{.kind = NetworkCall::Kind::kStep,
                   .input = input,
                   .probabilities = output.probabilities,
                   .grad_pooled = output.grad_pooled};
  calls_.make(call);
  result_ = call.result;
  result_.finite = result_.finite && is_finite(output.grad_pooled, n);
  summed_[kFlag] = result_.finite ? 0.0F : 1.0F;
  const double share = static_cast<double>(n) / static_cast<double>(all);
  summed_[kLossShare] = static_cast<float>(result_.loss * share);
}

void ExternalNetwork::copy_flag(float* to, Place place) {
  SATRAP_CHECK(place == Place::kHost, "an external network is the host's");
  *to = summed_[kFlag];
}

void ExternalNetwork::apply(std::int64_t step) {
  result_.finite = summed_[kFlag] == 0.0F;
  if (std::ssize(summed_) > kFlagFloats) result_.loss = static_cast<double>(summed_[kLossShare]);
  if (!result_.finite) return;
  NetworkCall call{.kind = NetworkCall::Kind::kApply, .result = result_};
  call.input.step = step;
  calls_.make(call);
  result_.grad_norm = call.result.grad_norm;  // that of all ranks
}

void ExternalNetwork::forget_step() {
  NetworkCall call{.kind = NetworkCall::Kind::kForget};
  calls_.make(call);
}

void ExternalNetwork::predict(const DenseInput& input, const FloatMatrix& probabilities) {
  if (input.num_examples == 0) return;
  NetworkCall call{
      .kind = NetworkCall::Kind::kPredict, .input = input, .probabilities = probabilities};
  calls_.make(call);
}

/// The bytes are the values of one tensor: those of a checkpoint are copied and compared as bytes.
DenseNetwork::State ExternalNetwork::save() {
  NetworkCall call{.kind = NetworkCall::Kind::kSave};
  calls_.make(call);
  SATRAP_CHECK(call.state.size() % sizeof(float) == 0, "a state of ", call.state.size(), " bytes");
  std::vector<float> values(call.state.size() / sizeof(float));
  std::memcpy(values.data(), call.state.data(), call.state.size());
  State state;
  const std::int64_t size = std::ssize(values);
  state.push_back({kStateTensor, {size}, std::move(values)});
  return state;
}

void ExternalNetwork::load(const State& state) {
  if (state.size() != 1 || state[0].name != kStateTensor) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("the checkpoint's network is not one of a program in Python: it has '",
                       state.empty() ? "" : state[0].name, "', not '", kStateTensor, "'"));
  }
  NetworkCall call{.kind = NetworkCall::Kind::kLoad};
  call.state.resize(state[0].values.size() * sizeof(float));
  std::memcpy(call.state.data(), state[0].values.data(), call.state.size());
  calls_.make(call);
}

DenseNetwork::TrainingState ExternalNetwork::save_training_state() { refuse("optimizer state"); }
void ExternalNetwork::load_training_state(const TrainingState&) { refuse("optimizer state"); }
void ExternalNetwork::load_parameters(std::span<const float>) { refuse("parameters"); }
float ExternalNetwork::gradient_scale() { refuse("clipping"); }
double ExternalNetwork::learning_rate(std::int64_t) const { refuse("learning rate"); }

std::string ExternalNetwork::to_torchscript() {
  throw Error(
      ErrorCode::kInvalidConfig,
      "--network: a network in Python (model 'python') is not written as torchscript; write "
      "pt2 or onnx");
}

std::string ExternalNetwork::exported(const char* format) {
  NetworkCall call{.kind = NetworkCall::Kind::kExport, .format = format};
  calls_.make(call);
  return std::move(call.state);
}

}  // namespace satrap::dense
