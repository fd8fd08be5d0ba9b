#include "src/ps/gradient_merge.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/table/sharding.h"

namespace satrap::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Gradients of ranks for rows of 2 weights, and their merge.
class GradientMergeTest : public testing::Test {
 protected:
  /// By rank: the key and both elements of its gradient.
  using Said = std::vector<std::pair<std::uint64_t, float>>;

  struct Merged {
    std::uint64_t key;
    float first, second;
    bool operator==(const Merged&) const = default;
  };

  /// Merges in one partition; the ids have none of the partition's bits.
  std::vector<Merged> merge(const std::vector<Said>& ranks) {
    std::vector<Rank> kept(ranks.size());
    std::vector<RowGradients> gradients;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      for (const auto& [id, value] : ranks[r]) {
        kept[r].keys.push_back(static_cast<Key>(id));
        kept[r].rows.push_back(row(id));
        kept[r].values.insert(kept[r].values.end(), {value, -value});
      }
      gradients.push_back({kept[r].keys, kept[r].rows, FloatType::kFp32,
                           reinterpret_cast<const std::byte*>(kept[r].values.data())});
    }
    merge_.start(gradients, 2, 1);
    std::vector<Merged> merged;
    block_sizes_.clear();
    partitions_.clear();
    while (merge_.next_block()) {
      block_sizes_.push_back(std::ssize(merge_.rows()));
      partitions_.push_back(merge_.partition());
      for (std::int64_t i = 0; i < std::ssize(merge_.rows()); ++i) {
        const auto key = table::header_of(merge_.rows()[static_cast<std::size_t>(i)]).key;
        merged.push_back(
            {static_cast<std::uint64_t>(key), merge_.gradient(i)[0], merge_.gradient(i)[1]});
      }
    }
    return merged;
  }

  GradientMerge merge_;
  std::vector<std::int64_t> block_sizes_, partitions_;

 private:
  struct Rank {
    std::vector<Key> keys;
    std::vector<table::RowPointer> rows;
    std::vector<float> values;
  };
  struct alignas(16) Row {
    std::byte bytes[32];
  };

  table::RowPointer row(std::uint64_t id) {
    const table::RowPointer row = rows_[id].bytes;
    table::header_of(row).key = static_cast<Key>(id);
    return row;
  }
  std::map<std::uint64_t, Row> rows_;
};

TEST_F(GradientMergeTest, OfNobodyOrNothingIsNothing) {
  EXPECT_THAT(merge({}), IsEmpty());
  EXPECT_THAT(merge({{}, {}}), IsEmpty());
}

TEST_F(GradientMergeTest, OfOneRankIsWhatItSaid) {
  EXPECT_THAT(merge({{{3, 0.5F}, {7, 1.5F}}}),
              ElementsAre(Merged{3, 0.5F, -0.5F}, Merged{7, 1.5F, -1.5F}));
}

TEST_F(GradientMergeTest, EqualKeysAreOneWithTheirSum) {
  EXPECT_THAT(merge({{{3, 1}, {7, 2}}, {{5, 4}, {7, 8}}, {{7, 16}}}),
              ElementsAre(Merged{3, 1, -1}, Merged{5, 4, -4}, Merged{7, 26, -26}));
}

TEST_F(GradientMergeTest, SumsAreInTheOrderOfRanks) {
  // (1 + 2^24) + -2^24 is 0 in floats; 1 + (2^24 + -2^24) would be 1.
  EXPECT_THAT(merge({{{7, 1}}, {{7, 1 << 24}}, {{7, -(1 << 24)}}}), ElementsAre(Merged{7, 0, 0}));
}

TEST_F(GradientMergeTest, ManyRowsComeInSeveralBlocks) {
  Said said;
  for (std::uint64_t id = 0; id < 130; ++id) said.emplace_back(id, 1.0F);
  EXPECT_EQ(merge({said, said}).size(), 130U);
  EXPECT_THAT(block_sizes_, ElementsAre(64, 64, 2));
}

TEST_F(GradientMergeTest, ABlockIsOfOnePartition) {
  const std::uint64_t next = std::uint64_t{1} << (kIdBits - table::kPartitionBits);
  EXPECT_EQ(merge({{{1, 1}, {next, 1}}, {{2, 1}, {next + 1, 1}}}).size(), 4U);
  EXPECT_THAT(block_sizes_, ElementsAre(2, 2));
  EXPECT_THAT(partitions_, ElementsAre(0, 1));
}

}  // namespace
}  // namespace satrap::ps
