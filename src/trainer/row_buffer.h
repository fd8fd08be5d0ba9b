#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "satrap/data/batch.h"
#include "satrap/data/schema.h"

namespace satrap::trainer {

/// What is exchanged among rows: one feature, or columns of Batch::numeric.
struct ModelInput {
  std::string name;
  std::int64_t feature = -1;               // -1: it is a number
  std::vector<std::int64_t> columns = {};  // of a number: its own, and its indicator's
};

/// The inputs of the model: features, then numbers, in the order of the schema.
std::vector<ModelInput> inputs_of(const data::Schema& schema);

/// Consecutive batches whose rows are numbered through.
class RowBuffer {
 public:
  void clear();
  void add(const data::Batch& batch);

  std::size_t num_rows() const { return places_.size(); }
  std::span<const data::Batch> batches() const { return batches_; }

  /// Overwrites `batch` with batch `b`, in which row r of the buffer has the input of row from[r]:
  /// `from` is [num_rows].
  void exchange(std::size_t b,
                const ModelInput& input,
                std::span<const std::size_t> from,
                data::Batch& batch) const;

 private:
  struct Place {
    std::size_t batch = 0;
    std::int64_t row = 0;
  };
  void exchange_numbers(const ModelInput& input,
                        std::span<const Place> from,
                        data::Batch& batch) const;
  void exchange_bags(const data::Batch& own,
                     std::int64_t feature,
                     std::span<const Place> from,
                     data::Batch& batch) const;

  std::vector<data::Batch> batches_;
  std::vector<Place> places_;        // of each row
  std::vector<std::size_t> begins_;  // the first row of each batch
};

}  // namespace satrap::trainer
