#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "satrap/core/float_matrix.h"

namespace satrap::dense {

/// Where the gradient of a network's parameters is, for what sums it over ranks or sends it away.
/// Calls come from the thread that trains the network; functions about the host's memory wait for
/// what was queued on a device.
class GradientSource {
 public:
  virtual ~GradientSource() = default;

  /// Called while forward_backward still computes: gradient() from `first` on is complete, and
  /// forward_backward neither reads nor writes it again, so the callee may. `first` is a multiple
  /// of kGradientBucket that decreases by one bucket per call and never reaches 0: the first bucket
  /// is complete when forward_backward returns. Threads of the pool call it, one at a time, and
  /// wait for it.
  using OnGradient = std::function<void(std::int64_t first)>;
  static constexpr std::int64_t kGradientBucket = 1 << 16;

  /// The gradient of the last forward_backward, flat, for a collective to sum; valid until the next
  /// one.
  virtual std::span<float> gradient() = 0;  // [num_parameters]

  /// The floats before gradient()[0], followed by its first bucket: the part to sum last. The first
  /// float is a flag: 1 if the loss or a gradient is not finite; once summed over ranks, the number
  /// of ranks of which that is so. The second is the same of the ranks whose gradient is not finite
  /// because of the loss scale alone. The third is the share of this rank's loss in that of all, of
  /// a network with its own loss (DenseNetwork::has_own_loss). The others before gradient()[0] are
  /// 0.
  virtual std::span<float> flag_and_first_bucket() = 0;
  static constexpr std::int64_t kFlagFloats = 16;
  float flag() { return flag_and_first_bucket()[0]; }

  /// Flag and gradient in the memory of the network's device, in one piece, for a collective of
  /// devices to sum in the order of the network's stream; without values if they are the host's.
  virtual FloatMatrix flag_and_gradient_on_device() { return {}; }  // [1, kFlagFloats + parameters]
};

}  // namespace satrap::dense
