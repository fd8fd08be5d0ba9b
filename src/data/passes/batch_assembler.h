#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/data/row_block.h"
#include "satrap/data/schema.h"
#include "satrap/data/time_zone.h"
#include "satrap/data/transforms.h"

namespace satrap::data {

/// Rows begin .. end - 1 of a block.
struct RowPiece {
  const RowBlock* block = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Makes batches from pieces of row blocks: applies the numeric transforms and lays out the ids
/// feature by feature. One thread at a time; the schema must outlive it.
class BatchAssembler {
 public:
  BatchAssembler(const Schema& schema, const FittedTransforms& transforms);

  /// Replaces `batch` by the rows of `pieces`, in order.
  void assemble(std::span<const RowPiece> pieces, Batch& batch) const;

 private:
  /// What a feature is made from, and its place among those of its kind in the schema.
  struct Source {
    enum class Kind : std::uint8_t { kIds, kNumber, kTime, kCross };
    Kind kind = Kind::kIds;
    std::size_t place = 0;
  };
  void add_feature(std::int64_t feature, std::span<const RowPiece> pieces, Batch& batch) const;
  void add_numeric(const Schema::NumericInput& input,
                   const FittedTransforms::Scale& scale,
                   std::span<const RowPiece> pieces,
                   Batch& batch) const;
  void add_bags(std::int64_t column,
                std::int64_t feature,
                std::span<const RowPiece> pieces,
                Batch& batch) const;
  void add_weights(std::span<const RowPiece> pieces, Batch& batch) const;
  void weigh_negatives(Batch& batch) const;
  void add_groups(std::span<const RowPiece> pieces, Batch& batch) const;
  void add_buckets(std::size_t bucketed, std::span<const RowPiece> pieces, Batch& batch) const;
  void add_dated(std::size_t dated, std::span<const RowPiece> pieces, Batch& batch) const;
  void add_cross(const Schema::Cross& cross, Batch& batch) const;

  const Schema& schema_;
  std::vector<FittedTransforms::Scale> scales_;  // [schema.numeric_inputs]
  std::vector<std::vector<double>> boundaries_;  // [schema.bucketed]
  std::vector<TimeZone> zones_;                  // [schema.dated]
  std::vector<Source> sources_;                  // [schema.features]
};

}  // namespace satrap::data
