#include "src/embedding/miss_curve.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace satrap::embedding {
namespace {

/// The ids of keys are mixed already, so one multiplication is hash enough.
bool is_sampled(Key key, int shift) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  return shift == 0 || (static_cast<std::uint64_t>(key) * kFactor) >> (64 - shift) == 0;
}

}  // namespace

void MissCurve::add(std::uint32_t number, std::span<const Key> keys, std::int64_t row_bytes) {
  // Every key of a batch is asked, which must not take long: no branches.
  sampled_.resize(keys.size());
  std::size_t num_sampled = 0;
  for (const Key key : keys) {
    sampled_[num_sampled] = key;
    num_sampled += is_sampled(key, shift_) ? 1 : 0;
  }
  for (const Key key : std::span(sampled_).first(num_sampled)) {
    if (next_place_ == bytes_.size()) compact();
    const double scale = static_cast<double>(std::uint64_t{1} << shift_);
    const auto [found, is_new] = last_use_.try_emplace(key, Use{number, 0, row_bytes});
    Use& use = found->second;
    if (!is_new && use.batch == number) continue;
    num_uses_ += scale;
    if (is_new) {
      num_first_uses_ += scale;
    } else {
      const std::int64_t all = bytes_before(next_place_);
      const std::int64_t between = all - bytes_before(use.place);  // the row itself included
      const auto bytes = static_cast<std::uint64_t>(static_cast<double>(between) * scale);
      reuses_[std::min<std::size_t>(kMaxDoublings - 1, std::bit_width(bytes))] += scale;
      add_bytes(use.place, -use.row_bytes);
    }
    use.batch = number;
    use.place = next_place_++;
    add_bytes(use.place, row_bytes);
  }
  if (last_use_.size() > max_keys_) thin();
}

void MissCurve::thin() {
  ++shift_;
  std::erase_if(last_use_, [&](const auto& entry) { return !is_sampled(entry.first, shift_); });
  compact();
}

/// Numbers the places anew, without gaps, and makes room for as many again.
void MissCurve::compact() {
  std::vector<std::pair<std::uint32_t, Use*>> order;
  for (auto& [key, use] : last_use_) order.emplace_back(use.place, &use);
  std::ranges::sort(order, {}, [](const auto& entry) { return entry.first; });
  bytes_.assign(std::max<std::size_t>(1024, 4 * last_use_.size()), 0);
  next_place_ = 0;
  for (const auto& [place, use] : order) {
    use->place = next_place_++;
    add_bytes(use->place, use->row_bytes);
  }
}

std::int64_t MissCurve::bytes_before(std::uint32_t place) const {
  std::int64_t sum = 0;
  for (std::size_t i = place; i > 0; i &= i - 1) sum += bytes_[i - 1];
  return sum;
}

void MissCurve::add_bytes(std::uint32_t place, std::int64_t bytes) {
  for (std::size_t i = place + std::size_t{1}; i <= bytes_.size(); i += i & (~i + 1)) {
    bytes_[i - 1] += bytes;
  }
}

std::vector<MissCurve::Point> MissCurve::points() const {
  std::vector<Point> points;
  if (num_uses_ == 0.0) return points;
  double misses = num_uses_;
  for (std::size_t i = 0; i < reuses_.size(); ++i) {
    misses -= reuses_[i];
    const bool is_first = points.empty() && reuses_[i] == 0.0;
    if (is_first) continue;
    points.push_back({std::int64_t{1} << i, std::max(0.0, misses) / num_uses_});
    if (misses <= num_first_uses_ * (1.0 + 1e-9)) break;
  }
  return points;
}

std::int64_t MissCurve::halving_bytes(std::int64_t cache_bytes) const {
  const double first = num_uses_ == 0.0 ? 0.0 : num_first_uses_ / num_uses_;
  double now = 1.0;
  const std::vector<Point> all = points();
  for (const Point& point : all) {
    if (point.cache_bytes <= cache_bytes) now = point.miss_rate;
  }
  for (const Point& point : all) {
    if (point.cache_bytes > cache_bytes && 2.0 * (point.miss_rate - first) <= now - first) {
      return point.cache_bytes;
    }
  }
  return 0;
}

}  // namespace satrap::embedding
