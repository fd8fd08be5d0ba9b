#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/texts.h"
#include "satrap/pipeline/rank_group.h"
#include "satrap/trainer/counted_rows.h"
#include "satrap/trainer/trainer.h"
#include "src/trainer/frequent_texts.h"

namespace satrap::trainer {

/// Divides evaluation rows by the texts of one column (train.slices). One byte per row of all
/// ranks, and 24 while they are gathered; besides that as much as FrequentTexts. One thread.
class SliceColumn {
 public:
  static constexpr std::size_t kMaxSlices = 20;  // besides that of all other rows

  explicit SliceColumn(std::string name) : name_(std::move(name)) {}

  /// Texts of this rank's next rows.
  void add(const data::Texts& texts);

  /// Once all are added: chooses the slices, the same on all ranks, which all call it.
  void gather(pipeline::RankGroup& ranks);

  /// Metrics of the slices, the most frequent first. `counted` is of the rows of all ranks.
  SlicedColumn evaluate(const CountedRows& counted, job::Loss loss) const;

 private:
  std::vector<std::string> texts_of(const std::vector<std::uint64_t>& frequent,
                                    pipeline::RankGroup& ranks) const;

  const std::string name_;
  FrequentTexts texts_;
  std::vector<std::uint64_t> hashes_;  // of this rank's texts, until they are gathered
  std::vector<std::string> values_;    // of the slices
  std::vector<std::uint8_t> slices_;   // [rows of all ranks] in values_; its size: another one
};

}  // namespace satrap::trainer
