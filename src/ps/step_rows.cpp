#include "src/ps/step_rows.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/table/sharding.h"

namespace satrap::ps {

StepRows::StepRows() : state_(std::make_unique<State>()) {}
StepRows::~StepRows() = default;
StepRows::StepRows(StepRows&&) noexcept = default;
StepRows& StepRows::operator=(StepRows&&) noexcept = default;

DenseExchange::DenseExchange() : state_(std::make_unique<State>()) {}
DenseExchange::~DenseExchange() = default;
DenseExchange::DenseExchange(DenseExchange&&) noexcept = default;
DenseExchange& DenseExchange::operator=(DenseExchange&&) noexcept = default;

std::span<const float* const> StepRows::weights() const { return state_->weights; }
std::span<float* const> StepRows::gradients() const { return state_->gradients; }
std::int64_t StepRows::read_version() const { return state_->read_version; }

void StepRows::State::divide(std::span<const Key> keys,
                             std::span<const std::int64_t> dims,
                             std::int64_t num_shards) {
  shards.resize(static_cast<std::size_t>(num_shards));
  for (Shard& part : shards) part.num_keys = part.num_values = 0;
  stretches.clear();
  auto next = keys.begin();
  for (std::size_t t = 0; t < dims.size(); ++t) {
    const auto end = std::partition_point(
        next, keys.end(), [&](Key key) { return static_cast<std::size_t>(table_of(key)) <= t; });
    for (std::int64_t s = 0; s < num_shards; ++s) {
      stretches.push_back(next - keys.begin());
      const auto stop = s + 1 == num_shards ? end : std::partition_point(next, end, [&](Key key) {
        return table::shard_of(key, num_shards) <= s;
      });
      Shard& part = shards[static_cast<std::size_t>(s)];
      part.num_keys += stop - next;
      part.num_values += (stop - next) * dims[t];
      next = stop;
    }
    stretches.push_back(next - keys.begin());
  }
  SATRAP_CHECK(next == keys.end(), "a key of table ", static_cast<int>(table_of(keys.back())),
               ", there are ", dims.size());
}

}  // namespace satrap::ps
