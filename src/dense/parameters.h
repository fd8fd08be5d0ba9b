#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace satrap::dense {

/// A named range of the flat parameter buffer. A vector has one row.
struct Parameter {
  std::string name;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  /// Initial values: uniform in [-range, range); or, if the range is 0, the constant; or given.
  float range = 0.0F;
  float constant = 0.0F;
  std::vector<float> given = {};

  std::int64_t size() const;
};

/// Values outside the parameters that training changes: the running statistics of a batch
/// normalisation. `offset` into their own flat buffer.
struct Buffer {
  std::string name;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  float initial = 0.0F;
};

using ParameterId = std::size_t;
using BufferId = std::size_t;
using ScratchId = std::size_t;

/// The parts of a model, collected while its layers are constructed: parameters and buffers, one
/// after the other in flat memory, and the matrices that a pass over rows needs (width of each).
class Layout {
 public:
  ParameterId add_parameter(std::string name,
                            std::vector<std::int64_t> shape,
                            float range,
                            float constant = 0.0F);
  ParameterId add_parameter(std::string name,
                            std::vector<std::int64_t> shape,
                            std::vector<float> values);
  /// The parameter is the constant in the logit of `label`, or in those of its classes. At most one
  /// is.
  void set_output_bias(std::int64_t label, ParameterId parameter);

  BufferId add_buffer(std::string name, std::int64_t size, float initial);
  /// A matrix of `cols` columns with as many rows as the pass, or of `fixed_rows` rows if given.
  ScratchId add_scratch(std::int64_t cols, std::int64_t fixed_rows = 0);

  struct Scratch {
    std::int64_t cols, fixed_rows;
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<Scratch>& scratch() const { return scratch_; }

  /// By label; shorter where the last labels have none.
  const std::vector<std::optional<ParameterId>>& output_biases() const { return output_biases_; }
  std::int64_t num_parameters() const { return num_parameters_; }
  std::int64_t num_buffer_values() const { return num_buffer_values_; }

  /// Fills both from the seed alone.
  void initialize(std::uint64_t seed, std::span<float> parameters, std::span<float> buffers) const;

 private:
  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<Scratch> scratch_;
  std::vector<std::optional<ParameterId>> output_biases_;
  std::int64_t num_parameters_ = 0;
  std::int64_t num_buffer_values_ = 0;
};

}  // namespace satrap::dense
