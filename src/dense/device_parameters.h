#pragma once

#include <cstdint>
#include <span>

#include "satrap/backend/memory.h"
#include "satrap/backend/stream.h"
#include "src/dense/dense_state.h"
#include "src/dense/libtorch.h"

namespace satrap::dense {

/// What training changes of a network, in the memory of its device, with a copy in the host's: of
/// the state where it is saved or loaded, of the gradient where the host sums it with others. Used
/// by one thread.
class DeviceParameters {
 public:
  /// All outlive it. `state` is the copy of the host.
  DeviceParameters(backend::Device& device, const backend::Stream& stream, DenseState& state);

  const TensorNetwork::Memory& memory() const { return memory_; }
  FloatMatrix flag_and_gradient() const {  // on the device
    return {memory_.flag, FloatType::kFp32, 1, num_values_, num_values_, backend::Place::kDevice};
  }

  // Both block until it is done: the state comes to the host, or from there.
  void fetch();
  void push();
  void fetch_loss_scale();  // the same, of it alone

  /// A gradient is computed next; the host's copy is of an older one.
  void begin_gradient() { is_on_host_ = is_changed_ = false; }
  void clear_gradient();  // and the flag; next_buffers are the buffers

  /// The host's copy, which may be changed until it is given back. The first call of a step blocks
  /// until the gradient has come.
  std::span<float> gradient_on_host();
  std::span<float> flag_and_first_bucket_on_host();
  float flag_on_host();       // blocks; without a copy of the rest
  void give_back_gradient();  // if the host has a copy; queued

 private:
  float* all_on_host();

  backend::Device& device_;
  const backend::Stream& stream_;
  DenseState& state_;
  const std::int64_t num_values_;  // of the flag's part and the gradient
  backend::Memory block_, host_;   // of the device; pinned
  TensorNetwork::Memory memory_;
  bool is_on_host_ = false, is_changed_ = false;  // perhaps, by the host
};

}  // namespace satrap::dense
