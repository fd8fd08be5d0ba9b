#include "satrap/data/transforms.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/portable_math.h"
#include "src/data/passes/date_part.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kSampleValues = 200'000;

/// Mean and variance in one pass (Welford 1962).
struct Moments {
  std::int64_t count = 0;
  double mean = 0;
  double sum_squares = 0;  // of differences to the mean

  void add(double x) {
    ++count;
    const double difference = x - mean;
    mean += difference / static_cast<double>(count);
    sum_squares += difference * (x - mean);
  }
  FittedTransforms::Scale scale() const {
    if (count == 0) return {};
    const double stddev = std::sqrt(sum_squares / static_cast<double>(count));
    return {.mean = mean, .stddev = stddev > 0 && std::isfinite(stddev) ? stddev : 1.0};
  }
};

/// A uniform sample of a stream (Vitter 1985, algorithm R); the whole stream while it fits.
struct Reservoir {
  RandomStream random;
  std::int64_t count = 0;
  std::vector<double> values;

  void add(double x) {
    const auto n = static_cast<std::uint64_t>(count++);
    if (count <= kSampleValues) {
      values.push_back(x);
    } else if (const std::uint64_t at = random.below(n, n + 1); at < values.size()) {
      values[at] = x;
    }
  }

  /// At most num_ranges - 1 boundaries. Equal values are never split: a frequent value merges
  /// ranges.
  std::vector<double> boundaries(std::int64_t num_ranges) {
    std::sort(values.begin(), values.end());
    std::vector<double> result;
    const auto size = static_cast<std::int64_t>(values.size());
    for (std::int64_t i = 1; i < num_ranges && size > 0; ++i) {
      const double boundary = values[static_cast<std::size_t>(i * size / num_ranges)];
      const double last = result.empty() ? values.front() : result.back();
      if (boundary > last) result.push_back(boundary);
    }
    return result;
  }
};

double before_scaling(double x, const NumericConfig& config, const SchemaConfig& text) {
  x = text.rounded(x);
  if (!config.clip.empty()) {
    x = std::clamp(x, text.rounded(config.clip[0]), text.rounded(config.clip[1]));
  }
  return takes_log1p(config.transform) ? text.rounded(signed_log1p(x)) : x;
}

}  // namespace

double number_of_row(const Schema::NumericInput& input, const RowBlock& block, std::int64_t row) {
  const auto value_of = [&](std::int64_t raw) {
    return block.numeric[static_cast<std::size_t>(raw)][static_cast<std::size_t>(row)];
  };
  const double value = value_of(input.raw);
  return input.config.is_age() ? age_of(value, value_of(input.since), input.config.unit) : value;
}

double signed_log1p(double x) {
  return std::isfinite(x) ? std::copysign(portable_log1p(std::fabs(x)), x) : x;
}

FittedTransforms fixed_transforms(const Schema& schema) {
  SATRAP_CHECK(!schema.needs_fit(), "the schema has transforms that are fitted");
  FittedTransforms transforms;
  transforms.scales.resize(schema.numeric_inputs.size());
  for (const Schema::Bucketed& feature : schema.bucketed) {
    transforms.boundaries.push_back(feature.config.buckets.boundaries);
  }
  return transforms;
}

FittedTransforms fit_transforms(const Schema& schema,
                                RowBlockSource& rows,
                                std::int64_t max_rows,
                                std::uint64_t seed,
                                const std::function<void()>& after_block) {
  std::vector<Moments> moments(schema.numeric_inputs.size());
  std::vector<Reservoir> samples(schema.bucketed.size());
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].random.stream = hash64(seed, i);

  RowBlock block;
  std::int64_t num_rows = 0;
  while ((max_rows == 0 || num_rows < max_rows) && rows.next(block)) {
    const std::int64_t count =
        max_rows == 0 ? block.num_rows : std::min(block.num_rows, max_rows - num_rows);
    num_rows += count;
    if (after_block) after_block();
    for (std::size_t i = 0; i < moments.size(); ++i) {
      const Schema::NumericInput& input = schema.numeric_inputs[i];
      if (!takes_zscore(input.config.transform)) continue;
      for (std::int64_t r = 0; r < count; ++r) {
        const double x = number_of_row(input, block, r);
        if (!std::isnan(x)) moments[i].add(before_scaling(x, input.config, schema.text));
      }
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (schema.bucketed[i].config.buckets.quantiles == 0) continue;
      const auto raw = static_cast<std::size_t>(schema.bucketed[i].raw);
      const double* const values = block.numeric[raw].data();
      for (std::int64_t r = 0; r < count; ++r) {
        if (!std::isnan(values[r])) samples[i].add(schema.text.rounded(values[r]));
      }
    }
  }
  if (num_rows == 0) {
    throw Error(ErrorCode::kInvalidData, "the training data have no rows to fit transforms on");
  }

  FittedTransforms transforms;
  for (const Moments& moment : moments) transforms.scales.push_back(moment.scale());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const BucketConfig& buckets = schema.bucketed[i].config.buckets;
    transforms.boundaries.push_back(buckets.quantiles > 0 ? samples[i].boundaries(buckets.quantiles)
                                                          : buckets.boundaries);
  }
  return transforms;
}

std::string FittedTransforms::to_json(const Schema& schema) const {
  nlohmann::json json;
  json["scales"] = nlohmann::json::object();
  json["boundaries"] = nlohmann::json::object();
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const NumericConfig& config = schema.numeric_inputs[i].config;
    if (!takes_zscore(config.transform)) continue;
    json["scales"][config.name] = {{"mean", scales[i].mean}, {"stddev", scales[i].stddev}};
  }
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    json["boundaries"][schema.bucketed[i].config.name] = boundaries[i];
  }
  return json.dump(2) + "\n";
}

FittedTransforms FittedTransforms::from_json(const std::string& text, const Schema& schema) {
  FittedTransforms transforms;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    for (const Schema::NumericInput& input : schema.numeric_inputs) {
      Scale& scale = transforms.scales.emplace_back();
      if (!takes_zscore(input.config.transform)) continue;
      const nlohmann::json& kept = json.at("scales").at(input.config.name);
      scale = {.mean = kept.at("mean").get<double>(), .stddev = kept.at("stddev").get<double>()};
    }
    for (const Schema::Bucketed& feature : schema.bucketed) {
      transforms.boundaries.push_back(
          json.at("boundaries").at(feature.config.name).get<std::vector<double>>());
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                concat("the fitted transforms do not belong to this schema: ", error.what()));
  }
  for (const Scale& scale : transforms.scales) {
    if (!std::isfinite(scale.mean) || !(scale.stddev > 0)) {
      throw Error(ErrorCode::kCorrupt, "the fitted transforms hold an invalid mean or deviation");
    }
  }
  return transforms;
}

}  // namespace satrap::data
