#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/row_block.h"
#include "satrap/data/schema.h"

namespace satrap::data {

/// What the labels of rows are: the share of positives, the range and mean of numbers, the most
/// frequent class. A missing label counts nowhere.
class LabelStats {
 public:
  /// The schema must outlive it.
  explicit LabelStats(const Schema& schema);

  void add(const RowBlock& block, std::size_t row);

  /// "3.2000% positive", or for several labels "click 3.2000%, buy 0.1000% positive"; "mean 2.5000,
  /// 0 to 12"; "class_1 in 40.0000%".
  std::string text() const;

 private:
  struct Label {
    std::int64_t count = 0;
    double sum = 0.0;
    float least = 0.0F, most = 0.0F;
    std::vector<std::int64_t> of_class;  // [classes]
  };
  std::string text_of(std::size_t label) const;

  const Schema& schema_;
  std::vector<Label> labels_;
};

}  // namespace satrap::data
