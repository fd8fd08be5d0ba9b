#include "satrap/data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/mutex.h"
#include "satrap/core/portable_math.h"
#include "src/data/generate/synthetic_feature.h"
#include "src/data/generate/synthetic_numeric.h"

namespace satrap::data {
namespace {

constexpr std::size_t kCalibrationRows = 65536;
constexpr double kSmallestP = 0x1.0p-24;  // so that p and 1 - p are floats above 0

/// The seed of the log is hashed with one of these for each use.
enum Use : std::uint64_t { kRows, kCalibration, kFeatures, kNumeric, kPairs };

/// The draws of a row that belong to no feature.
constexpr std::uint64_t kLabelDraw = ~std::uint64_t{0} - 1;
constexpr std::uint64_t kNumericDraws = std::uint64_t{1} << 63;

/// The sums of the logit, before they are weighted. [num_rows] each.
struct Sums {
  std::vector<double> ids, pairs, numeric;

  void reset(std::size_t rows) {
    for (auto* sum : {&ids, &pairs, &numeric}) sum->assign(rows, 0.0);
  }
};

/// Intermediate values of a tile, reused by the tiles of one call.
struct Workspace {
  SyntheticRows rows;
  SyntheticFeature::Ids ids;
  std::vector<std::vector<float>> vectors;  // [features in pairs][num_rows, kVectorDim]
  Sums sums;
};

struct Logit {
  double bias = 0.0, ids = 0.0, pairs = 0.0, numeric = 0.0;  // weights of the sums

  double operator()(const Sums& sums, std::size_t row) const {
    return bias + (ids * sums.ids[row] + pairs * sums.pairs[row] + numeric * sums.numeric[row]);
  }
};

double deviation(const std::vector<double>& values) {
  double mean = 0.0, variance = 0.0;
  for (const double value : values) mean += value;
  mean /= static_cast<double>(values.size());
  for (const double value : values) variance += (value - mean) * (value - mean);
  return std::sqrt(variance / static_cast<double>(values.size()));
}

/// The b for which the mean of sigmoid(b + logits) is `base_rate`, by bisection.
double solve_bias(const std::vector<double>& logits, double base_rate) {
  double low = -200.0, high = 200.0;
  for (int i = 0; i < 50; ++i) {
    const double bias = 0.5 * (low + high);
    double mean = 0.0;
    for (const double logit : logits) mean += portable_sigmoid(bias + logit);
    mean /= static_cast<double>(logits.size());
    (mean < base_rate ? low : high) = bias;
  }
  return 0.5 * (low + high);
}

}  // namespace

class SyntheticGenerator::Impl {
 public:
  explicit Impl(const SyntheticConfig& config) : config_(config) {
    config_.validate("synthetic data");
    const auto seed = static_cast<std::uint64_t>(config_.seed);
    rows_ = RandomStream{hash64(seed, kRows)};
    for (std::int64_t f = 0; f < config_.num_features(); ++f) {
      features_.emplace_back(config_, f, hash64(seed, kFeatures));
    }
    numeric_ = make_synthetic_numeric(config_, hash64(seed, kNumeric));
    choose_pairs(hash64(seed, kPairs));
  }

  const SyntheticConfig& config() const { return config_; }
  bool wide_ids(std::int64_t f) const { return features_.at(static_cast<std::size_t>(f)).wide(); }

  void generate(std::int64_t first_row,
                std::int64_t num_rows,
                RowBlock& block,
                std::vector<float>* probabilities) const {
    SATRAP_CHECK(first_row >= 0 && num_rows >= 0, "rows ", first_row, " + ", num_rows);
    block.clear(config_.num_numeric, config_.num_features());
    block.first_row = first_row;
    block.num_rows = num_rows;
    if (probabilities != nullptr) probabilities->clear();
    const Logit logit = calibrated();
    Workspace work;
    for (std::int64_t row = first_row; row < first_row + num_rows;) {
      const std::int64_t end =
          std::min(row + static_cast<std::int64_t>(kTileRows), first_row + num_rows);
      work.rows.clear();
      for (; row < end; ++row) {
        const auto number = static_cast<std::uint64_t>(row);
        work.rows.add({rows_.bits(number)}, moment_of(row), number);
      }
      generate_tile(work, &block);
      draw_labels(logit, work, block, probabilities);
    }
  }

 private:
  std::uint64_t moment_of(std::int64_t row) const {
    const double share = static_cast<double>(row) / static_cast<double>(config_.rows);
    return static_cast<std::uint64_t>(std::min(share, 1.0) * 0x1.0p32);
  }

  /// Takes the first of all pairs in the order of a hash.
  void choose_pairs(std::uint64_t seed) {
    std::vector<std::pair<std::uint64_t, std::pair<std::size_t, std::size_t>>> all;
    for (std::size_t f = 0; f < features_.size(); ++f) {
      for (std::size_t g = f + 1; g < features_.size(); ++g) {
        all.push_back({hash64(seed, f, g), {f, g}});
      }
    }
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), static_cast<std::size_t>(config_.interactions)));
    vector_of_feature_.assign(features_.size(), kNoVector);
    const auto vector_of = [&](std::size_t feature) {
      if (vector_of_feature_[feature] == kNoVector) vector_of_feature_[feature] = num_vectors_++;
      return vector_of_feature_[feature];
    };
    for (const auto& [order, pair] : all) {
      pairs_.push_back({vector_of(pair.first), vector_of(pair.second)});
    }
  }

  /// Fills the columns of `block` (if not null), except the labels, and the sums for work.rows.
  void generate_tile(Workspace& work, RowBlock* block) const {
    const std::size_t rows = work.rows.size();
    work.sums.reset(rows);
    work.vectors.resize(num_vectors_);
    for (std::size_t f = 0; f < features_.size(); ++f) {
      features_[f].draw(work.rows, work.ids);
      features_[f].add_weights(work.ids, work.sums.ids);
      if (vector_of_feature_[f] != kNoVector) {
        std::vector<float>& vectors = work.vectors[vector_of_feature_[f]];
        vectors.assign(rows * SyntheticFeature::kVectorDim, 0.0F);
        features_[f].add_vectors(work.ids, vectors);
      }
      if (block == nullptr) continue;
      RowBlock::Bags& bags = block->bags[f];
      features_[f].append_ids(work.ids, bags.ids);
      for (const std::int64_t size : work.ids.sizes) {
        bags.offsets.push_back(bags.offsets.back() + size);
      }
    }
    for (const auto& [first, second] : pairs_) {
      add_products(work.vectors[first], work.vectors[second], work.sums.pairs);
    }
    for (std::size_t c = 0; c < numeric_.size(); ++c) {
      add_numbers(c, work, block == nullptr ? nullptr : &block->numeric[c]);
    }
  }

  static void add_products(const std::vector<float>& first,
                           const std::vector<float>& second,
                           std::vector<double>& sums) {
    for (std::size_t r = 0; r < sums.size(); ++r) {
      float product = 0.0F;
      for (std::size_t d = 0; d < SyntheticFeature::kVectorDim; ++d) {
        const std::size_t at = r * SyntheticFeature::kVectorDim + d;
        product += first[at] * second[at];
      }
      sums[r] += static_cast<double>(product);
    }
  }

  void add_numbers(std::size_t c, Workspace& work, std::vector<double>* out) const {
    constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
    const SyntheticNumeric& column = numeric_[c];
    for (std::size_t r = 0; r < work.rows.size(); ++r) {
      const std::size_t drawn = column.draw(work.rows.random[r].bits(kNumericDraws + c));
      const bool missing = drawn == SyntheticNumeric::kQuantiles;
      work.sums.numeric[r] += missing ? column.missing_term : column.terms[drawn];
      if (out != nullptr) out->push_back(missing ? kMissing : column.values[drawn]);
    }
  }

  static void draw_labels(const Logit& logit,
                          const Workspace& work,
                          RowBlock& block,
                          std::vector<float>* probabilities) {
    for (std::size_t r = 0; r < work.rows.size(); ++r) {
      const double p =
          std::clamp(portable_sigmoid(logit(work.sums, r)), kSmallestP, 1.0 - kSmallestP);
      const bool positive = work.rows.random[r].uniform_double(kLabelDraw) < p;
      block.labels.push_back(positive ? 1.0F : 0.0F);
      if (probabilities != nullptr) probabilities->push_back(static_cast<float>(p));
    }
  }

  /// The logit, which the first call solves.
  Logit calibrated() const {
    const MutexLock lock(mutex_);
    if (!logit_) {
      logit_ =
          solve_logit(RandomStream{hash64(static_cast<std::uint64_t>(config_.seed), kCalibration)});
    }
    return *logit_;
  }

  /// Solves the weights of the logit over rows spread over the whole run. The rows come from a
  /// separate stream, so that the teacher does not depend on the number of rows.
  Logit solve_logit(const RandomStream& random) const {
    Sums sample;
    Workspace work;
    for (std::size_t row = 0; row < kCalibrationRows;) {
      work.rows.clear();
      for (std::size_t i = 0; i < kTileRows; ++i, ++row) {
        // The number affects only new ids, which say nothing about the label.
        work.rows.add({random.bits(row)}, (row << 32) / kCalibrationRows, row);
      }
      generate_tile(work, nullptr);
      append(work.sums, sample);
    }
    Logit solved;
    const double ids_share = 1.0 - config_.interaction_share - config_.numeric_share;
    const auto weight = [](double share, const std::vector<double>& sums) {
      const double spread = deviation(sums);
      return spread > 0.0 ? std::sqrt(std::max(share, 0.0)) / spread : 0.0;
    };
    solved.ids = weight(ids_share, sample.ids);
    solved.pairs = weight(config_.interaction_share, sample.pairs);
    solved.numeric = weight(config_.numeric_share, sample.numeric);

    std::vector<double> logits(kCalibrationRows);
    for (std::size_t r = 0; r < logits.size(); ++r) logits[r] = solved(sample, r);
    const double spread = deviation(logits);
    const double scale = spread > 0.0 ? config_.signal / spread : 0.0;
    for (double* part : {&solved.ids, &solved.pairs, &solved.numeric}) *part *= scale;
    for (double& logit : logits) logit *= scale;
    solved.bias = solve_bias(logits, config_.base_rate);
    return solved;
  }

  static void append(const Sums& from, Sums& to) {
    to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
    to.pairs.insert(to.pairs.end(), from.pairs.begin(), from.pairs.end());
    to.numeric.insert(to.numeric.end(), from.numeric.begin(), from.numeric.end());
  }

  static constexpr std::size_t kNoVector = static_cast<std::size_t>(-1);

  SyntheticConfig config_;
  RandomStream rows_{};  // the n-th number is the seed of row n
  std::vector<SyntheticFeature> features_;
  std::vector<SyntheticNumeric> numeric_;
  std::vector<std::size_t> vector_of_feature_;  // [num_features] or kNoVector
  std::size_t num_vectors_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;  // of vectors
  mutable Mutex mutex_;
  mutable std::optional<Logit> logit_ SATRAP_GUARDED_BY(mutex_);  // empty until it is solved
};

SyntheticGenerator::SyntheticGenerator(const SyntheticConfig& config)
    : impl_(std::make_unique<const Impl>(config)) {}
SyntheticGenerator::~SyntheticGenerator() = default;

const SyntheticConfig& SyntheticGenerator::config() const { return impl_->config(); }

bool SyntheticGenerator::wide_ids(std::int64_t f) const { return impl_->wide_ids(f); }

void SyntheticGenerator::generate(std::int64_t first_row,
                                  std::int64_t num_rows,
                                  RowBlock& block,
                                  std::vector<float>* probabilities) const {
  impl_->generate(first_row, num_rows, block, probabilities);
}

}  // namespace satrap::data
