#include "src/embedding/kept_batches.h"

#include <utility>

#include "satrap/core/error.h"

namespace satrap::embedding {

bool KeptBatches::keep(std::int64_t step, Parts parts) {
  SATRAP_CHECK(kept_.empty() || kept_.back().step < step, "step ", step,
               " is looked at after step ", kept_.back().step);
  std::int64_t bytes = 0;
  for (const auto& part : parts) bytes += part->batch.host_bytes();
  if (bytes_ + bytes > max_bytes_) return false;
  bytes_ += bytes;
  Kept kept;
  if (!free_.empty()) {
    kept = std::move(free_.back());
    free_.pop_back();
  } else {
    for (const auto& part : parts) {
      kept.batches.push_back(std::make_unique<GroupBatch>(device_, layout_, part->group, pool_));
    }
  }
  kept.step = step;
  kept.bytes = bytes;
  exchange(kept, parts);
  kept_.push_back(std::move(kept));
  return true;
}

bool KeptBatches::take(std::int64_t step, Parts parts) {
  if (kept_.empty() || kept_.front().step > step) return false;
  SATRAP_CHECK(kept_.front().step == step, "step ", step, " is planned, and step ",
               kept_.front().step, ", which was looked at before, has not been");
  exchange(kept_.front(), parts);
  bytes_ -= kept_.front().bytes;
  free_.push_back(std::move(kept_.front()));
  kept_.pop_front();
  return true;
}

void KeptBatches::exchange(Kept& kept, Parts parts) {
  for (std::size_t g = 0; g < parts.size(); ++g) parts[g]->batch.exchange(*kept.batches[g]);
}

}  // namespace satrap::embedding
