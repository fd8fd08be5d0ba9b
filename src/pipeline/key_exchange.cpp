#include "src/pipeline/key_exchange.h"

#include "src/pipeline/parts_of_ranks.h"

namespace satrap::pipeline {

KeyOwners::KeyOwners(const std::vector<const embedding::RowGroup*>& groups,
                     std::size_t num_tables,
                     std::int64_t ranks)
    : num_groups(groups.size()),
      num_ranks(static_cast<std::size_t>(ranks)),
      group_of_table_(num_tables) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const TableId table : groups[g]->tables) {
      group_of_table_[static_cast<std::size_t>(table)] = g;
    }
  }
}

void KeyExchange::exchange(std::span<const Key> keys,
                           std::int64_t num_examples,
                           net::Deadline deadline) {
  divide(keys);
  exchange_counts(num_examples, deadline);
  exchange_keys(deadline);
}

/// Keys in the order in which they are sent, and the places where their vectors will be.
void KeyExchange::divide(std::span<const Key> keys) {
  asked_.clear();
  for (const Key key : keys) ++asked_.at(owners_.group_of(key), owners_.rank_of(key));

  Counts next_place(owners_.num_groups, owners_.num_ranks);
  Counts next_key(owners_.num_groups, owners_.num_ranks);
  std::int64_t key_begin = 0;
  for (std::size_t r = 0; r < owners_.num_ranks; ++r) {
    for (std::size_t g = 0; g < owners_.num_groups; ++g) {
      next_key.at(g, r) = key_begin;
      key_begin += asked_.at(g, r);
      if (r > 0) next_place.at(g, r) = next_place.at(g, r - 1) + asked_.at(g, r - 1);
    }
  }
  asked_keys_.resize(keys.size());
  place_of_.resize(keys.size());
  for (std::size_t u = 0; u < keys.size(); ++u) {
    const std::size_t g = owners_.group_of(keys[u]), r = owners_.rank_of(keys[u]);
    place_of_[u] = next_place.at(g, r)++;
    asked_keys_[static_cast<std::size_t>(next_key.at(g, r)++)] = keys[u];
  }
}

void KeyExchange::exchange_counts(std::int64_t num_examples, net::Deadline deadline) {
  const std::vector<std::int64_t> ones(owners_.num_ranks, 1);
  const std::size_t line = owners_.num_groups + 1;  // elements
  counts_to_.clear();
  for (std::size_t r = 0; r < owners_.num_ranks; ++r) {
    counts_to_.push_back(num_examples);
    for (std::size_t g = 0; g < owners_.num_groups; ++g) counts_to_.push_back(asked_.at(g, r));
  }
  counts_from_.resize(counts_to_.size());
  pipeline::exchange<std::int64_t>(group_, counts_to_, ones, counts_from_, ones,
                                   static_cast<std::int64_t>(line), deadline);
  num_examples_ = 0;
  for (std::size_t r = 0; r < owners_.num_ranks; ++r) {
    const std::int64_t* const theirs = counts_from_.data() + r * line;
    num_examples_ += theirs[0];
    for (std::size_t g = 0; g < owners_.num_groups; ++g) lent_.at(g, r) = theirs[g + 1];
  }
}

void KeyExchange::exchange_keys(net::Deadline deadline) {
  std::vector<std::int64_t> to(owners_.num_ranks), from(owners_.num_ranks);
  std::int64_t num_lent = 0;
  for (std::size_t g = 0; g < owners_.num_groups; ++g) {
    for (std::size_t r = 0; r < owners_.num_ranks; ++r) {
      to[r] += asked_.at(g, r);
      from[r] += lent_.at(g, r);
      num_lent += lent_.at(g, r);
    }
  }
  lent_keys_.resize(static_cast<std::size_t>(num_lent));
  pipeline::exchange<Key>(group_, asked_keys_, to, lent_keys_, from, 1, deadline);
  for (std::vector<Key>& keys : lent_of_group_) keys.clear();
  auto next = lent_keys_.begin();
  for (std::size_t r = 0; r < owners_.num_ranks; ++r) {
    for (std::size_t g = 0; g < owners_.num_groups; ++g) {
      const auto end = next + lent_.at(g, r);
      lent_of_group_[g].insert(lent_of_group_[g].end(), next, end);
      next = end;
    }
  }
}

}  // namespace satrap::pipeline
