#include "src/data/generate/synthetic_feature.h"

#include <cmath>

#include "satrap/core/ids.h"

namespace satrap::data {
namespace {

constexpr std::uint64_t kLow32 = 0xFFFFFFFFU;
constexpr std::int64_t kMaxNarrow = std::int64_t{1} << 30;  // leaves half of 32 bits to new ids

/// A bijection on 32 bits with full avalanche (C. Wellons, "lowbias32").
std::uint64_t mix32(std::uint64_t place) {
  auto x = static_cast<std::uint32_t>(place);
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  return x ^ (x >> 16);
}

std::uint64_t threshold(double rate) { return static_cast<std::uint64_t>(rate * 0x1.0p32); }

/// Element d of four 16-bit numbers as a value in (-1/2, 1/2), symmetric around 0.
float centered(std::uint64_t bits, std::size_t d) {
  const auto part = static_cast<std::int32_t>((bits >> (16 * d)) & 0xFFFF);
  return (static_cast<float>(part) - 32767.5F) * 0x1.0p-16F;
}

/// About normal with mean 0 and variance 1: the sum of four uniform numbers.
double bell(std::uint64_t bits) {
  const std::uint64_t sum =
      (bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48);
  constexpr double kScale = 1.7320508075688772 * 0x1.0p-16;
  return (static_cast<double>(static_cast<std::int64_t>(sum)) - 131070.0) * kScale;
}

double zipf_exponent(const SyntheticConfig& config, std::int64_t feature, std::uint64_t seed) {
  if (!config.zipf.empty()) return SyntheticConfig::per_column(config.zipf, feature);
  // 0.8 ... 1.1 in equal steps, in an order independent of the cardinalities.
  const std::int64_t features = config.num_features();
  std::int64_t place = 0;
  const auto key = [&](std::int64_t f) { return hash64(seed, static_cast<std::uint64_t>(f)); };
  for (std::int64_t f = 0; f < features; ++f) place += key(f) < key(feature) ? 1 : 0;
  return 0.8 + 0.3 * (static_cast<double>(place) + 0.5) / static_cast<double>(features);
}

}  // namespace

SyntheticFeature::SyntheticFeature(const SyntheticConfig& config,
                                   std::int64_t feature,
                                   std::uint64_t seed)
    : cardinality_(static_cast<std::uint64_t>(config.scaled_cardinality(feature))),
      ranks_(config.scaled_cardinality(feature), zipf_exponent(config, feature, seed)),
      min_size_(static_cast<std::uint64_t>(SyntheticConfig::per_column(config.min_ids, feature))),
      max_size_(static_cast<std::uint64_t>(SyntheticConfig::per_column(config.max_ids, feature))),
      empty_below_(threshold(SyntheticConfig::per_column(config.empty_rate, feature))),
      drift_below_(threshold(config.drift)),
      new_below_(threshold(config.new_id_rate)),
      wide_(config.scaled_cardinality(feature) > kMaxNarrow),
      draws_(static_cast<std::uint64_t>(feature) << 32) {
  const RandomStream random{hash64(seed, static_cast<std::uint64_t>(feature), 1)};
  id_seed_ = random.bits(0);
  weight_seed_ = random.bits(1);
  vector_seed_ = random.bits(2);
  drift_seed_ = random.bits(3);
  new_seed_ = random.bits(4);
  // The more ids a bag has, the less each contributes, so that all features contribute about
  // equally.
  const double mean_size = 0.5 * static_cast<double>(min_size_ + max_size_);
  importance_ = (0.5 + random.uniform_double(5)) / std::sqrt(mean_size);
}

void SyntheticFeature::draw_sizes(const SyntheticRows& rows, Ids& ids) const {
  ids.sizes.resize(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::uint64_t bits = rows.random[r].bits(draws_);
    const std::uint64_t size = min_size_ + (((bits >> 32) * (max_size_ - min_size_ + 1)) >> 32);
    ids.sizes[r] = (bits & kLow32) < empty_below_ ? 0 : static_cast<std::int64_t>(size);
  }
}

void SyntheticFeature::draw(const SyntheticRows& rows, Ids& ids) const {
  ids.row_of.clear();
  ids.bits.clear();
  if (min_size_ == 1 && max_size_ == 1 && empty_below_ == 0) {
    ids.sizes.assign(rows.size(), 1);
    ids.row_of.resize(rows.size());
    ids.bits.resize(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      ids.row_of[r] = static_cast<std::uint32_t>(r);
      ids.bits[r] = rows.random[r].bits(draws_ + 1);
    }
  } else {
    draw_sizes(rows, ids);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::int64_t i = 0; i < ids.sizes[r]; ++i) {
        ids.row_of.push_back(static_cast<std::uint32_t>(r));
        ids.bits.push_back(rows.random[r].bits(draws_ + 1 + static_cast<std::uint64_t>(i)));
      }
    }
  }
  ids.places.resize(ids.bits.size());
  ranks_.sample(ids.bits, ids.places, ids.scratch);
  for (std::uint64_t& place : ids.places) --place;
  if (drift_below_ > 0) replace_drifted(rows, ids);
  if (new_below_ > 0) insert_new(rows, ids);
}

/// Whether and when an id is replaced is a hash of its place.
void SyntheticFeature::replace_drifted(const SyntheticRows& rows, Ids& ids) const {
  for (std::size_t i = 0; i < ids.places.size(); ++i) {
    const std::uint64_t fate = hash64(ids.places[i] + drift_seed_);
    const bool replaced =
        (fate & kLow32) < drift_below_ && (fate >> 32) < rows.moment[ids.row_of[i]];
    ids.places[i] += replaced ? cardinality_ : 0;
  }
}

void SyntheticFeature::insert_new(const SyntheticRows& rows, Ids& ids) const {
  // Numbers the occurrences of this feature in the log. Places must fit the bits of an id; in a
  // narrow feature they repeat after at least 2^31 occurrences.
  const std::uint64_t first_new = 2 * cardinality_;
  const std::uint64_t room = (wide_ ? kIdMask : kLow32) - first_new;
  std::uint64_t in_row = 0;
  for (std::size_t i = 0; i < ids.places.size(); ++i) {
    in_row = i > 0 && ids.row_of[i] == ids.row_of[i - 1] ? in_row + 1 : 0;
    if ((hash64(ids.bits[i] + new_seed_) & kLow32) >= new_below_) continue;
    ids.places[i] = first_new + (rows.number[ids.row_of[i]] * max_size_ + in_row) % room;
  }
}

void SyntheticFeature::append_ids(const Ids& ids, std::vector<std::uint64_t>& out) const {
  const std::size_t before = out.size();
  out.resize(before + ids.places.size());
  std::uint64_t* const to = out.data() + before;
  if (wide_) {
    const std::uint64_t seed = id_seed_ & kIdMask;
    for (std::size_t i = 0; i < ids.places.size(); ++i) to[i] = mix_id(ids.places[i] ^ seed);
  } else {
    for (std::size_t i = 0; i < ids.places.size(); ++i) to[i] = mix32(ids.places[i] ^ id_seed_);
  }
}

void SyntheticFeature::add_weights(const Ids& ids, std::span<double> sums) const {
  for (std::size_t i = 0; i < ids.places.size(); ++i) {
    const double weight = importance_ * bell(hash64(ids.places[i] + weight_seed_));
    sums[ids.row_of[i]] += ids.places[i] < 2 * cardinality_ ? weight : 0.0;
  }
}

void SyntheticFeature::add_vectors(const Ids& ids, std::span<float> sums) const {
  const auto scale = static_cast<float>(importance_);
  for (std::size_t i = 0; i < ids.places.size(); ++i) {
    if (ids.places[i] >= 2 * cardinality_) continue;
    const std::uint64_t bits = hash64(ids.places[i] + vector_seed_);
    float* const sum = sums.data() + ids.row_of[i] * kVectorDim;
    for (std::size_t d = 0; d < kVectorDim; ++d) sum[d] += scale * centered(bits, d);
  }
}

}  // namespace satrap::data
