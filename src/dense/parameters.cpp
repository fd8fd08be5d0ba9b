#include "src/dense/parameters.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap::dense {

std::int64_t Parameter::size() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return size;
}

ParameterId Layout::add_parameter(std::string name,
                                  std::vector<std::int64_t> shape,
                                  float range,
                                  float constant) {
  parameters_.push_back({std::move(name), num_parameters_, std::move(shape), range, constant});
  num_parameters_ += parameters_.back().size();
  return parameters_.size() - 1;
}

ParameterId Layout::add_parameter(std::string name,
                                  std::vector<std::int64_t> shape,
                                  std::vector<float> values) {
  const ParameterId id = add_parameter(std::move(name), std::move(shape), 0.0F);
  parameters_[id].given = std::move(values);
  return id;
}

void Layout::set_output_bias(std::int64_t label, ParameterId parameter) {
  const auto at = static_cast<std::size_t>(label);
  output_biases_.resize(std::max(output_biases_.size(), at + 1));
  SATRAP_CHECK(!output_biases_[at], "label ", label, ": output bias '", parameters_[parameter].name,
               "' is its second");
  output_biases_[at] = parameter;
}

BufferId Layout::add_buffer(std::string name, std::int64_t size, float initial) {
  buffers_.push_back({std::move(name), num_buffer_values_, size, initial});
  num_buffer_values_ += size;
  return buffers_.size() - 1;
}

ScratchId Layout::add_scratch(std::int64_t cols, std::int64_t fixed_rows) {
  scratch_.push_back({cols, fixed_rows});
  return scratch_.size() - 1;
}

void Layout::initialize(std::uint64_t seed,
                        std::span<float> parameters,
                        std::span<float> buffers) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    const std::span<float> values =
        parameters.subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.size()));
    if (!p.given.empty()) {
      std::ranges::copy(p.given, values.begin());
      continue;
    }
    if (p.range == 0.0F) {
      std::fill(values.begin(), values.end(), p.constant);
      continue;
    }
    const RandomStream random{hash64(seed, 0xDE45E, i)};
    for (std::size_t n = 0; n < values.size(); ++n) {
      values[n] = (2.0F * random.uniform(n) - 1.0F) * p.range;
    }
  }
  for (const Buffer& b : buffers_) {
    std::fill_n(buffers.begin() + b.offset, b.size, b.initial);
  }
}

}  // namespace satrap::dense
