#include "src/data/batch_assembler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "satrap/core/error.h"
#include "satrap/core/grouped_auc.h"
#include "satrap/core/hash.h"
#include "satrap/core/portable_math.h"
#include "src/data/row_filler.h"

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
    : schema_(schema),
      scales_(transforms.scales),
      id_column_of_feature_(schema.features.size(), -1),
      bucketed_of_feature_(schema.features.size(), -1) {
  SATRAP_CHECK(transforms.scales.size() == schema.numeric_inputs.size() &&
                   transforms.boundaries.size() == schema.bucketed.size(),
               "the transforms are those of another schema");
  for (const std::vector<double>& boundaries : transforms.boundaries) {
    std::vector<double>& compared = boundaries_.emplace_back();
    for (const double boundary : boundaries) compared.push_back(schema.text.rounded(boundary));
  }
  for (std::size_t i = 0; i < schema.id_columns.size(); ++i) {
    if (schema.id_columns[i].feature == Schema::kGroups) continue;
    id_column_of_feature_[static_cast<std::size_t>(schema.id_columns[i].feature)] =
        static_cast<std::int64_t>(i);
  }
  for (std::size_t i = 0; i < schema.bucketed.size(); ++i) {
    bucketed_of_feature_[static_cast<std::size_t>(schema.bucketed[i].feature)] =
        static_cast<std::int64_t>(i);
  }
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
  for (std::int64_t f = 0; f < batch.num_features; ++f) {
    const std::int64_t column = id_column_of_feature_[static_cast<std::size_t>(f)];
    if (column >= 0) {
      add_bags(column, f, pieces, batch);
    } else {
      add_buckets(static_cast<std::size_t>(bucketed_of_feature_[static_cast<std::size_t>(f)]),
                  pieces, batch);
    }
  }
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
  const bool logged = config.transform.starts_with("log1p");
  const bool scaled = config.transform.ends_with("zscore");
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
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += kNumbersAtATime) {
      const std::int64_t end = std::min(begin + kNumbersAtATime, piece.end);
      const std::span numbers(buffer.data(), static_cast<std::size_t>(end - begin));
      std::copy(values + begin, values + end, numbers.begin());
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
        const bool missing = std::isnan(values[begin + static_cast<std::int64_t>(i)]);
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
  const bool own_id = feature.config.missing == "own_id";
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

}  // namespace satrap::data
