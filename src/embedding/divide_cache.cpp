#include "src/embedding/divide_cache.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::embedding {
namespace {

using backend::CacheSize;

/// A set of 32 ways overflows when more than 32 pinned rows belong to it. With sets for four times
/// the pinned rows that are 8 on average, and more than 32 once in about 10^10 sets.
constexpr std::int64_t kAmpleFactor = 4;
constexpr std::int64_t kAmpleOverflowShare = 16;

std::int64_t set_bytes(const GroupNeed& need, const CacheLimits& limits) {
  return CacheSize{.num_sets = 1}.bytes(*need.layout) +
         CacheSize::kWays * limits.window_bytes_per_slot;
}

/// A batch that needs no row of any group does not say that none will be needed.
double needed_bytes(const GroupNeed& need, const CacheLimits& limits) {
  return static_cast<double>(std::max<std::int64_t>(1, need.num_keys) * set_bytes(need, limits));
}

std::int64_t overflow_rows(const GroupNeed& need,
                           std::int64_t num_slots,
                           std::int64_t max_in_flight) {
  const std::int64_t at_once = (need.num_keys + need.num_keys / 4 + 1) * max_in_flight;
  if (num_slots < kAmpleFactor * at_once) return at_once;
  return at_once / kAmpleOverflowShare + CacheSize::kWays;
}

}  // namespace

std::vector<CacheSize> divide_cache(std::span<const GroupNeed> needs, const CacheLimits& limits) {
  std::int64_t least_bytes = 0;
  double all_bytes = 0.0;  // as a ratio only
  for (const GroupNeed& need : needs) {
    least_bytes += set_bytes(need, limits);
    all_bytes += needed_bytes(need, limits);
  }
  if (limits.memory_bytes < least_bytes) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("embedding.cache.memory: ", format_bytes(limits.memory_bytes),
                       " is too small: the smallest cache is one set of ", CacheSize::kWays,
                       " rows for each of ", needs.size(),
                       " groups of tables with equal rows, together ", least_bytes, " bytes"));
  }
  const auto rest = static_cast<double>(limits.memory_bytes - least_bytes);
  std::vector<CacheSize> sizes;
  for (const GroupNeed& need : needs) {
    const double share = needed_bytes(need, limits) / all_bytes;
    CacheSize& size = sizes.emplace_back();
    size.num_sets = 1 + static_cast<std::int64_t>(rest * share) / set_bytes(need, limits);
    size.overflow_rows = overflow_rows(need, size.num_slots(), limits.max_in_flight);
    if (size.total_slots() > CacheSize::kMaxSlots) {
      throw Error(
          ErrorCode::kInvalidConfig,
          concat("embedding.cache.memory: ", format_bytes(limits.memory_bytes), " has room for ",
                 size.total_slots(), " rows of ", need.layout->device_stride, " bytes; at most ",
                 CacheSize::kMaxSlots, " can be numbered"));
    }
  }
  return sizes;
}

std::int64_t batches_to_look_ahead(std::span<const GroupNeed> needs,
                                   std::span<const CacheSize> sizes) {
  constexpr double kCacheFulls = 6.0;
  constexpr std::int64_t kLeast = 2;
  double of_batch = 1.0, bytes = 0.0;
  for (std::size_t g = 0; g < needs.size(); ++g) {
    const auto stride = static_cast<double>(needs[g].layout->device_stride);
    of_batch += stride * static_cast<double>(needs[g].num_keys);
    bytes += stride * static_cast<double>(sizes[g].num_slots());
  }
  return std::max(kLeast, static_cast<std::int64_t>(kCacheFulls * bytes / of_batch));
}

backend::WindowSize window_size(const GroupNeed& need,
                                const CacheSize& size,
                                std::int64_t look_ahead) {
  constexpr std::int64_t kKeysPerSlot = 2;
  return {.depth = look_ahead + 1,
          .max_keys = need.num_keys + need.num_keys / 4 + 1,
          .num_sets = kKeysPerSlot * size.num_sets};
}

}  // namespace satrap::embedding
