#pragma once

#include <array>
#include <cstdint>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "satrap/dense/dense_network.h"
#include "src/dense/matrix.h"

namespace satrap::dense {

/// Pinned memory for the numbers of one step, handed out in parts.
class Staging {
 public:
  explicit Staging(backend::Device& device) : device_(device) {}

  /// What was handed out before is done with. Room for `bytes`, in at most kParts parts.
  void begin(std::int64_t bytes);
  template <class T>
  T* take(std::int64_t count) {
    return reinterpret_cast<T*>(take_bytes(backend::arena_bytes<T>(count)));
  }
  static constexpr std::int64_t kParts = 8;

 private:
  std::byte* take_bytes(std::int64_t bytes);

  backend::Device& device_;
  backend::Memory memory_;
  std::int64_t used_ = 0;
};

/// The steps of a network on a device whose results have not been taken: their numbers, on the way
/// to the device and back. Used by one thread.
class StepsInFlight {
 public:
  static constexpr std::int64_t kMax = 2;

  explicit StepsInFlight(backend::Device& device);

  /// The pinned memory of a new step, for `rows` rows of `cols` inputs. Blocks until the step kMax
  /// before it is done.
  Staging& begin(std::int64_t rows, std::int64_t num_outputs, std::int64_t cols);

  /// Queue the way of the step's results to the host: what finish() returns and puts into
  /// `to`. `probabilities` [rows, num_outputs] side by side, `result` and `flag` are on the device.
  void queue_results(const float* probabilities,
                     const FloatMatrix& to,
                     const double* result,
                     const float* flag,
                     const backend::Stream& stream);
  void queue_flag(const float* flag, const backend::Stream& stream);  // anew

  /// Queues the way of a number of the newest step to the device, once in a step.
  void upload(float number, float* to, const backend::Stream& stream);

  /// Blocks until the oldest step is done.
  DenseResult finish();

  /// Pinned memory for `count` floats of a prediction, between steps; blocks until the stream is
  /// idle.
  Staging& begin_prediction(std::int64_t count, const backend::Stream& stream);

  /// Copies a matrix without gaps to pinned memory, where it stays until the next call; blocks
  /// until it is there.
  const float* download(const Matrix& from, const backend::Stream& stream);

 private:
  struct Step {
    explicit Step(backend::Device& device) : staging(device), done(device) {}
    Staging staging;
    backend::Event done;
    std::int64_t rows = 0, num_outputs = 0;
    FloatMatrix to;
    float* probabilities = nullptr;  // these four are pinned
    double* result = nullptr;
    float* flag = nullptr;
    float* number = nullptr;
  };
  Step& newest() { return steps_[static_cast<std::size_t>((num_begun_ - 1) % kMax)]; }
  Step& oldest() { return steps_[static_cast<std::size_t>(num_finished_ % kMax)]; }

  backend::Device& device_;
  std::array<Step, kMax> steps_;
  std::int64_t num_begun_ = 0, num_finished_ = 0;
  Staging prediction_;
  backend::Memory download_;
};

}  // namespace satrap::dense
