#include "src/data/passes/batch_assembler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/grouped_auc.h"
#include "satrap/core/hash.h"
#include "satrap/core/portable_math.h"
#include "src/data/passes/date_part.h"
#include "src/data/rows/row_filler.h"

namespace satrap::data {

namespace {

constexpr std::uint64_t kGroupSeed = 0x67726F757073;  // "groups"

constexpr std::int64_t kNumbersAtATime = 256;

/// signed_log1p of each, to the bit, without branches, so that several are computed at a time.
void take_logs(std::span<double> numbers) {
  for (double& x : numbers) {
    const double size = std::isfinite(x) ? std::fabs(x) : 0.0;
    const double sum = 1.0 + size, taken = sum - 1.0;
    const double log = portable_log(sum) * (size / (taken == 0.0 ? 1.0 : taken));
    const double signed_log = std::copysign(taken == 0.0 ? size : log, x);
    x = std::isfinite(x) ? signed_log : x;
  }
}

/// The group of a row with this bag: a hash of all its ids, in order.
std::uint64_t group_of(std::span<const std::uint64_t> bag) {
  if (bag.empty()) return kNoGroup;
  std::uint64_t group = kGroupSeed;
  for (const std::uint64_t id : bag) group = hash64(group, id);
  return group == kNoGroup ? kGroupSeed : group;
}

}  // namespace

BatchAssembler::BatchAssembler(const Schema& schema, const FittedTransforms& transforms)
    : schema_(schema), scales_(transforms.scales), sources_(schema.features.size()) {
  SATRAP_CHECK(transforms.scales.size() == schema.numeric_inputs.size() &&
                   transforms.boundaries.size() == schema.bucketed.size(),
               "the transforms are those of another schema");
  for (const std::vector<double>& boundaries : transforms.boundaries) {
    std::vector<double>& compared = boundaries_.emplace_back();
    for (const double boundary : boundaries) compared.push_back(schema.text.rounded(boundary));
  }
  using Kind = Source::Kind;
  const auto add_sources = [&](const auto& features, Kind kind) {
    for (std::size_t i = 0; i < features.size(); ++i) {
      if (features[i].feature == Schema::kGroups) continue;
      sources_[static_cast<std::size_t>(features[i].feature)] = {.kind = kind, .place = i};
    }
  };
  add_sources(schema.id_columns, Kind::kIds);
  add_sources(schema.bucketed, Kind::kNumber);
  add_sources(schema.dated, Kind::kTime);
  add_sources(schema.crosses, Kind::kCross);
  for (const Schema::Dated& feature : schema.dated) zones_.emplace_back(feature.config.zone);
}

void BatchAssembler::assemble(std::span<const RowPiece> pieces, Batch& batch) const {
  batch.num_examples = 0;
  batch.num_features = schema_.num_features();
  batch.num_numeric = schema_.num_numeric_outputs();
  batch.num_labels = schema_.num_labels();
  batch.labels.clear();
  for (const RowPiece& piece : pieces) {
    batch.num_examples += piece.end - piece.begin;
    const auto labels = piece.block->labels.begin();
    batch.labels.insert(batch.labels.end(), labels + piece.begin * batch.num_labels,
                        labels + piece.end * batch.num_labels);
  }
  batch.numeric.resize(static_cast<std::size_t>(batch.num_examples * batch.num_numeric));
  for (std::size_t i = 0; i < schema_.numeric_inputs.size(); ++i) {
    add_numeric(schema_.numeric_inputs[i], scales_[i], pieces, batch);
  }
  batch.offsets.resize(static_cast<std::size_t>(batch.num_features * batch.num_examples) + 1);
  batch.offsets[0] = 0;
  batch.ids.clear();
  batch.id_weights.clear();
  for (std::int64_t f = 0; f < batch.num_features; ++f) add_feature(f, pieces, batch);
  batch.weights.clear();
  if (schema_.weight >= 0) add_weights(pieces, batch);
  if (schema_.share_of_negatives < 1.0) weigh_negatives(batch);
  if (schema_.grouped) add_groups(pieces, batch);
  batch.kept.resize(schema_.kept.size());
  for (std::size_t k = 0; k < batch.kept.size(); ++k) {
    batch.kept[k].clear();
    for (const RowPiece& piece : pieces) {
      for (std::int64_t r = piece.begin; r < piece.end; ++r) {
        batch.kept[k].push(piece.block->kept[k].at(r));
      }
    }
  }
}

void BatchAssembler::add_weights(std::span<const RowPiece> pieces, Batch& batch) const {
  for (const RowPiece& piece : pieces) {
    const std::vector<double>& weights =
        piece.block->numeric[static_cast<std::size_t>(schema_.weight)];
    std::transform(weights.begin() + piece.begin, weights.begin() + piece.end,
                   std::back_inserter(batch.weights),
                   [](double weight) { return static_cast<float>(weight); });
  }
}

/// A negative stands for those that are not there.
void BatchAssembler::weigh_negatives(Batch& batch) const {
  const auto num_examples = static_cast<std::size_t>(batch.num_examples);
  const auto num_labels = static_cast<std::size_t>(batch.num_labels);
  const auto factor = static_cast<float>(1.0 / schema_.share_of_negatives);
  batch.weights.resize(num_examples, 1.0F);
  for (std::size_t r = 0; r < num_examples; ++r) {
    const auto labels = std::span(batch.labels).subspan(r * num_labels, num_labels);
    const bool is_negative = std::ranges::none_of(labels, [](float l) { return l == 1.0F; });
    if (is_negative) batch.weights[r] *= factor;
  }
}

void BatchAssembler::add_feature(std::int64_t feature,
                                 std::span<const RowPiece> pieces,
                                 Batch& batch) const {
  const auto [kind, place] = sources_[static_cast<std::size_t>(feature)];
  switch (kind) {
    case Source::Kind::kIds:
      return add_bags(static_cast<std::int64_t>(place), feature, pieces, batch);
    case Source::Kind::kNumber:
      return add_buckets(place, pieces, batch);
    case Source::Kind::kTime:
      return add_dated(place, pieces, batch);
    case Source::Kind::kCross:
      return add_cross(schema_.crosses[place], batch);
  }
}

void BatchAssembler::add_groups(std::span<const RowPiece> pieces, Batch& batch) const {
  batch.groups.clear();
  const auto add = [&](std::span<const std::int64_t> offsets,  // of consecutive rows, and the end
                       const std::vector<std::uint64_t>& ids) {
    for (std::size_t r = 0; r + 1 < offsets.size(); ++r) {
      const auto begin = static_cast<std::size_t>(offsets[r]);
      const auto end = static_cast<std::size_t>(offsets[r + 1]);
      batch.groups.push_back(group_of(std::span(ids).subspan(begin, end - begin)));
    }
  };
  if (schema_.group_feature != Schema::kGroups) {
    const auto rows = static_cast<std::size_t>(batch.num_examples);
    const auto feature = static_cast<std::size_t>(schema_.group_feature);
    add(std::span(batch.offsets).subspan(feature * rows, rows + 1), batch.ids);
    return;
  }
  for (const RowPiece& piece : pieces) {
    const RowBlock::Bags& bags = piece.block->bags.back();
    const auto begin = static_cast<std::size_t>(piece.begin);
    const auto rows = static_cast<std::size_t>(piece.end - piece.begin);
    add(std::span(bags.offsets).subspan(begin, rows + 1), bags.ids);
  }
}

void BatchAssembler::add_numeric(const Schema::NumericInput& input,
                                 const FittedTransforms::Scale& scale,
                                 std::span<const RowPiece> pieces,
                                 Batch& batch) const {
  const NumericConfig& config = input.config;
  const bool clipped = !config.clip.empty();
  const bool logged = takes_log1p(config.transform);
  const bool scaled = takes_zscore(config.transform);
  const SchemaConfig& text = schema_.text;
  const double low = clipped ? text.rounded(config.clip[0]) : 0.0;
  const double high = clipped ? text.rounded(config.clip[1]) : 0.0;
  const auto round = [&](std::span<double> numbers) {
    if (!text.rounds_numbers()) return;
    for (double& x : numbers) x = text.rounded(x);
  };
  const auto fill = static_cast<float>(config.fill);
  const auto stride = static_cast<std::size_t>(batch.num_numeric);
  float* out = batch.numeric.data() + input.output;
  std::array<double, kNumbersAtATime> buffer;
  for (const RowPiece& piece : pieces) {
    const double* const values = piece.block->numeric[static_cast<std::size_t>(input.raw)].data();
    const double* const since = piece.block->numeric[static_cast<std::size_t>(input.since)].data();
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += kNumbersAtATime) {
      const std::int64_t end = std::min(begin + kNumbersAtATime, piece.end);
      const std::span numbers(buffer.data(), static_cast<std::size_t>(end - begin));
      std::copy(values + begin, values + end, numbers.begin());
      for (std::size_t i = 0; config.is_age() && i < numbers.size(); ++i) {
        numbers[i] = age_of(numbers[i], since[begin + static_cast<std::int64_t>(i)], config.unit);
      }
      round(numbers);
      if (clipped) {
        for (double& x : numbers) x = std::clamp(x, low, high);
      }
      if (logged) {
        take_logs(numbers);
        round(numbers);
      }
      if (scaled) {
        for (double& x : numbers) x = (x - scale.mean) / scale.stddev;
      }
      for (std::size_t i = 0; i < numbers.size(); ++i, out += stride) {
        const bool missing = std::isnan(numbers[i]);  // before as after what was done with it
        if (config.missing_indicator) out[1] = missing ? 1.0F : 0.0F;
        out[0] = missing ? fill : static_cast<float>(numbers[i]);
      }
    }
  }
}

void BatchAssembler::add_bags(std::int64_t column,
                              std::int64_t feature,
                              std::span<const RowPiece> pieces,
                              Batch& batch) const {
  std::int64_t* offsets = batch.offsets.data() + feature * batch.num_examples + 1;
  for (const RowPiece& piece : pieces) {
    const RowBlock::Bags& bags = piece.block->bags[static_cast<std::size_t>(column)];
    const std::int64_t begin = bags.offsets[static_cast<std::size_t>(piece.begin)];
    const std::int64_t end = bags.offsets[static_cast<std::size_t>(piece.end)];
    const std::int64_t shift = static_cast<std::int64_t>(batch.ids.size()) - begin;
    offsets =
        std::transform(bags.offsets.begin() + piece.begin + 1, bags.offsets.begin() + piece.end + 1,
                       offsets, [shift](std::int64_t offset) { return offset + shift; });
    batch.ids.insert(batch.ids.end(), bags.ids.begin() + begin, bags.ids.begin() + end);
    if (!schema_.weighted) continue;
    if (bags.weights.empty()) {
      batch.id_weights.resize(batch.ids.size(), 1.0F);
    } else {
      batch.id_weights.insert(batch.id_weights.end(), bags.weights.begin() + begin,
                              bags.weights.begin() + end);
    }
  }
}

void BatchAssembler::add_buckets(std::size_t bucketed,
                                 std::span<const RowPiece> pieces,
                                 Batch& batch) const {
  const Schema::Bucketed& feature = schema_.bucketed[bucketed];
  const std::vector<double>& boundaries = boundaries_[bucketed];
  const bool own_id = feature.config.missing == MissingId::kOwnId;
  std::int64_t* offsets = batch.offsets.data() + feature.feature * batch.num_examples;
  for (const RowPiece& piece : pieces) {
    const double* const values = piece.block->numeric[static_cast<std::size_t>(feature.raw)].data();
    for (std::int64_t r = piece.begin; r < piece.end; ++r) {
      if (!std::isnan(values[r])) {
        const auto range =
            std::upper_bound(boundaries.begin(), boundaries.end(), schema_.text.rounded(values[r]));
        batch.ids.push_back(static_cast<std::uint64_t>(range - boundaries.begin()));
      } else if (own_id) {
        batch.ids.push_back(kMissingId);
      }
      *++offsets = static_cast<std::int64_t>(batch.ids.size());
    }
  }
  if (schema_.weighted) batch.id_weights.resize(batch.ids.size(), 1.0F);
}

void BatchAssembler::add_dated(std::size_t dated,
                               std::span<const RowPiece> pieces,
                               Batch& batch) const {
  const Schema::Dated& feature = schema_.dated[dated];
  const bool own_id = feature.config.missing == MissingId::kOwnId;
  std::int64_t* offsets = batch.offsets.data() + feature.feature * batch.num_examples;
  for (const RowPiece& piece : pieces) {
    const double* const times = piece.block->numeric[static_cast<std::size_t>(feature.raw)].data();
    for (std::int64_t r = piece.begin; r < piece.end; ++r) {
      if (!std::isnan(times[r])) {
        batch.ids.push_back(id_of_part(feature.config.part, zones_[dated], times[r]));
      } else if (own_id) {
        batch.ids.push_back(kMissingId);
      }
      *++offsets = static_cast<std::int64_t>(batch.ids.size());
    }
  }
  if (schema_.weighted) batch.id_weights.resize(batch.ids.size(), 1.0F);
}

/// All pairs of the ids of both features, those of the first one's first id first.
void BatchAssembler::add_cross(const Schema::Cross& cross, Batch& batch) const {
  const bool own_id = cross.config.missing == MissingId::kOwnId;
  for (std::int64_t r = 0; r < batch.num_examples; ++r) {
    const auto ids_of = [&](std::int64_t feature) {
      const auto bag = static_cast<std::size_t>(feature * batch.num_examples + r);
      return std::pair(static_cast<std::size_t>(batch.offsets[bag]),
                       static_cast<std::size_t>(batch.offsets[bag + 1]));
    };
    const auto [first, first_end] = ids_of(cross.first);
    const auto [second, second_end] = ids_of(cross.second);
    const auto put = [&](std::uint64_t id, float weight) {
      batch.ids.push_back(id);
      if (schema_.weighted) batch.id_weights.push_back(weight);
    };
    for (std::size_t a = first; a < first_end; ++a) {
      for (std::size_t b = second; b < second_end; ++b) {
        const float weight = schema_.weighted ? batch.id_weights[a] * batch.id_weights[b] : 1.0F;
        put(hash64(batch.ids[a], batch.ids[b]), weight);
      }
    }
    if (own_id && (first == first_end || second == second_end)) put(kMissingId, 1.0F);
    batch.offsets[static_cast<std::size_t>(cross.feature * batch.num_examples + r) + 1] =
        static_cast<std::int64_t>(batch.ids.size());
  }
}

}  // namespace satrap::data
