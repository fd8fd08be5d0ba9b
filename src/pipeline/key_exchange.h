#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/collective/communicator.h"
#include "satrap/embedding/row_groups.h"
#include "satrap/table/sharding.h"

namespace satrap::pipeline {

/// Which rank has a key in its cache, and in which row group.
class KeyOwners {
 public:
  /// `groups`: those of the caches, in their order.
  KeyOwners(const std::vector<const embedding::RowGroup*>& groups,
            std::size_t num_tables,
            std::int64_t num_ranks);

  std::size_t group_of(Key key) const {
    return group_of_table_[static_cast<std::size_t>(table_of(key))];
  }
  std::size_t rank_of(Key key) const {
    return static_cast<std::size_t>(table::shard_of(key, static_cast<std::int64_t>(num_ranks)));
  }

  const std::size_t num_groups, num_ranks;

 private:
  std::vector<std::size_t> group_of_table_;  // [num_tables]
};

/// The keys of the batches of a step, sent to the ranks that own them. Reused from step to step;
/// used by the planner's thread.
class KeyExchange {
 public:
  /// `owners` and `group` outlive it.
  KeyExchange(const KeyOwners& owners, collective::Communicator& group)
      : owners_(owners),
        group_(group),
        asked_(owners.num_groups, owners.num_ranks),
        lent_(owners.num_groups, owners.num_ranks),
        lent_of_group_(owners.num_groups) {}

  /// All ranks call it, each for the distinct keys of its batch of the same step, in any order.
  /// Throws net::NetError.
  void exchange(std::span<const Key> keys, std::int64_t num_examples, net::Deadline deadline);

  /// The place of the u-th key among those of its row group that are asked of other ranks: by
  /// owner, and in the order in which the owner has got them.
  std::int64_t place_of(std::size_t u) const { return place_of_[u]; }

  // The number of keys of a row group, by rank.
  std::span<const std::int64_t> asked_of(std::size_t group) const { return asked_.of(group); }
  std::span<const std::int64_t> lent_to(std::size_t group) const { return lent_.of(group); }

  /// The keys that the ranks ask of this one, by row group, in the order of the ranks.
  std::span<const std::vector<Key>> lent() const { return lent_of_group_; }

  std::int64_t num_examples() const { return num_examples_; }  // of all ranks

 private:
  /// Numbers of keys, by group and rank.
  class Counts {
   public:
    Counts(std::size_t num_groups, std::size_t num_ranks)
        : num_ranks_(num_ranks), counts_(num_groups * num_ranks) {}
    std::int64_t& at(std::size_t group, std::size_t rank) {
      return counts_[group * num_ranks_ + rank];
    }
    std::span<const std::int64_t> of(std::size_t group) const {
      return std::span(counts_).subspan(group * num_ranks_, num_ranks_);
    }
    void clear() { counts_.assign(counts_.size(), 0); }

   private:
    std::size_t num_ranks_;
    std::vector<std::int64_t> counts_;
  };

  void divide(std::span<const Key> keys);
  void exchange_counts(std::int64_t num_examples, net::Deadline deadline);
  void exchange_keys(net::Deadline deadline);

  const KeyOwners& owners_;
  collective::Communicator& group_;
  Counts asked_, lent_;                      // of other ranks, to them
  std::vector<std::int64_t> place_of_;       // [num_unique]
  std::vector<Key> asked_keys_, lent_keys_;  // by rank and group
  std::vector<std::int64_t> counts_to_, counts_from_;
  std::vector<std::vector<Key>> lent_of_group_;  // by rank
  std::int64_t num_examples_ = 0;
};

}  // namespace satrap::pipeline
