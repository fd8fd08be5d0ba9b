#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace satrap::dense {

/// A network as checkpoints, and other ranks, take it over. Calls come from the thread that trains
/// the network, and wait for what was queued on a device.
class Savable {
 public:
  virtual ~Savable() = default;

  /// Everything needed to continue: parameters, batch-norm statistics and optimizer state, by name,
  /// in a fixed order. save() and load() copy it.
  struct NamedTensor {
    std::string name;  // "bottom.0.weight", "adam.exp_avg", …
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  using State = std::vector<NamedTensor>;
  virtual State save() = 0;

  /// Throws Error(kInternal) unless names and sizes are those of save().
  virtual void load(const State& state) = 0;

  /// Whether names and sizes are always the same. If not, load() takes what any save() gave, and
  /// itself refuses what does not fit.
  virtual bool has_fixed_state() const { return true; }

  /// With fp16, the tensor of the loss scale, the last of save().
  static constexpr const char* kLossScaleTensor = "fp16.loss_scale";
};

}  // namespace satrap::dense
