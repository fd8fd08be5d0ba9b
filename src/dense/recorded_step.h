#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

#include "satrap/backend/stream.h"
#include "satrap/core/error.h"
#include "src/dense/libtorch.h"

/// What GraphNetwork needs to queue a step of a TensorNetwork, which may be recorded.
namespace satrap::dense {

/// All that the computation of a batch depends on but the values.
inline std::array<std::int64_t, 15> arguments_of(const TensorNetwork::Batch& batch) {
  const auto place = [](const void* values) { return reinterpret_cast<std::int64_t>(values); };
  return {place(batch.numeric.data),
          batch.numeric.stride,
          place(batch.pooled.data),
          batch.pooled.stride,
          place(batch.labels.data),
          batch.labels.stride,
          place(batch.weights.data),
          batch.weights.stride,
          place(batch.factors.data),
          place(batch.probabilities.data),
          place(batch.grad_pooled.data),
          batch.grad_pooled.stride,
          place(batch.result),
          batch.pooled.rows,
          std::bit_cast<std::int32_t>(batch.loss_examples)};
}

/// While it lives, the network takes its memory from that of recordings, if `is_recorded`.
class WhileRecorded {
 public:
  WhileRecorded(TensorNetwork& network, backend::StreamRef stream, bool is_recorded)
      : network_(is_recorded ? &network : nullptr) {
    if (network_ != nullptr) network_->begin_recording(stream.handle);
  }
  ~WhileRecorded() {
    if (network_ != nullptr) network_->end_recording();
  }
  WhileRecorded(const WhileRecorded&) = delete;
  WhileRecorded& operator=(const WhileRecorded&) = delete;

 private:
  TensorNetwork* const network_;
};

/// Calls compute(); what libtorch refuses becomes an error about the model, `name`.
template <class Compute>
void with_errors_of(const std::string& name, Compute compute) {
  try {
    compute();
  } catch (const std::range_error& error) {  // of a user's module
    throw Error(ErrorCode::kInvalidConfig, concat(name, ": ", error.what()));
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kUnavailable,
                concat(name, ": ", error.what(),
                       "; a smaller embedding.cache.memory or data.batch_size leaves more"));
  } catch (const std::runtime_error& error) {
    throw Error(ErrorCode::kInternal, concat(name, ": ", error.what()));
  }
}

}  // namespace satrap::dense
