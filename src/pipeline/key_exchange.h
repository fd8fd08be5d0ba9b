#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "satrap/collective/communicator.h"
#include "satrap/core/ids.h"
#include "satrap/table/sharding.h"

namespace satrap::pipeline {

/// The keys of the batches of a step, sent to the ranks that own them: each those of a range of
/// mixed ids (table::shard_of). Reused from step to step; used by the planner's thread.
class KeyExchange {
 public:
  /// `group` outlives it.
  KeyExchange(std::size_t num_groups, collective::Communicator& group)
      : num_groups_(num_groups),
        num_ranks_(static_cast<std::size_t>(group.size())),
        group_(group),
        asked_(num_groups_, std::vector<std::int64_t>(num_ranks_)),
        lent_(asked_),
        places_(num_groups_),
        lent_of_group_(num_groups_) {}

  /// All ranks call it, each for the distinct keys of its batch of the same step, by table group,
  /// in any order. Throws net::NetError.
  void exchange(std::span<const std::vector<Key>> keys,
                std::int64_t num_examples,
                net::Deadline deadline);

  /// The places of a table group's keys among those that are asked of other ranks: by owner, and in
  /// the order in which the owner has got them.
  std::span<const std::vector<std::int32_t>> places() const { return places_; }

  // The number of keys of a table group, by rank.
  std::span<const std::int64_t> asked_of(std::size_t group) const { return asked_[group]; }
  std::span<const std::int64_t> lent_to(std::size_t group) const { return lent_[group]; }

  /// The keys that the ranks ask of this one, by table group, in the order of the ranks.
  std::span<const std::vector<Key>> lent() const { return lent_of_group_; }

  std::int64_t num_examples() const { return num_examples_; }  // of all ranks

 private:
  using Counts = std::vector<std::vector<std::int64_t>>;  // [num_groups][num_ranks] of keys

  std::size_t owner_of(Key key) const {
    return static_cast<std::size_t>(table::shard_of(key, static_cast<std::int64_t>(num_ranks_)));
  }
  void divide(std::span<const std::vector<Key>> keys);
  void exchange_counts(std::int64_t num_examples, net::Deadline deadline);
  void exchange_keys(net::Deadline deadline);

  const std::size_t num_groups_, num_ranks_;
  collective::Communicator& group_;
  Counts asked_, lent_;                            // of other ranks, to them
  std::vector<std::vector<std::int32_t>> places_;  // [num_groups]
  std::vector<Key> asked_keys_, lent_keys_;        // by rank and group
  std::vector<std::int64_t> counts_to_, counts_from_;
  std::vector<std::vector<Key>> lent_of_group_;  // by rank
  std::int64_t num_examples_ = 0;
};

}  // namespace satrap::pipeline
