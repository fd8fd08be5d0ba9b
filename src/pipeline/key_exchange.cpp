#include "src/pipeline/key_exchange.h"

#include "src/pipeline/parts_of_ranks.h"

namespace satrap::pipeline {

void KeyExchange::exchange(std::span<const std::vector<Key>> keys,
                           std::int64_t num_examples,
                           net::Deadline deadline) {
  divide(keys);
  exchange_counts(num_examples, deadline);
  exchange_keys(deadline);
}

/// Keys in the order in which they are sent, and the places where their vectors will be.
void KeyExchange::divide(std::span<const std::vector<Key>> keys) {
  for (std::size_t g = 0; g < num_groups_; ++g) {
    asked_[g].assign(num_ranks_, 0);
    for (const Key key : keys[g]) ++asked_[g][owner_of(key)];
  }
  Counts next_place(num_groups_, std::vector<std::int64_t>(num_ranks_)), next_key = next_place;
  std::int64_t key_begin = 0;
  for (std::size_t r = 0; r < num_ranks_; ++r) {
    for (std::size_t g = 0; g < num_groups_; ++g) {
      next_key[g][r] = key_begin;
      key_begin += asked_[g][r];
      if (r > 0) next_place[g][r] = next_place[g][r - 1] + asked_[g][r - 1];
    }
  }
  asked_keys_.resize(static_cast<std::size_t>(key_begin));
  for (std::size_t g = 0; g < num_groups_; ++g) {
    places_[g].clear();
    for (const Key key : keys[g]) {
      const std::size_t r = owner_of(key);
      places_[g].push_back(static_cast<std::int32_t>(next_place[g][r]++));
      asked_keys_[static_cast<std::size_t>(next_key[g][r]++)] = key;
    }
  }
}

void KeyExchange::exchange_counts(std::int64_t num_examples, net::Deadline deadline) {
  const std::size_t line = num_groups_ + 1;  // values for a rank
  const std::vector<std::int64_t> lines(num_ranks_, static_cast<std::int64_t>(line));
  counts_to_.clear();
  for (std::size_t r = 0; r < num_ranks_; ++r) {
    counts_to_.push_back(num_examples);
    for (std::size_t g = 0; g < num_groups_; ++g) counts_to_.push_back(asked_[g][r]);
  }
  counts_from_.resize(counts_to_.size());
  pipeline::exchange<std::int64_t>(group_, counts_to_, lines, counts_from_, lines, deadline);
  num_examples_ = 0;
  for (std::size_t r = 0; r < num_ranks_; ++r) {
    const std::int64_t* const theirs = counts_from_.data() + r * line;
    num_examples_ += theirs[0];
    for (std::size_t g = 0; g < num_groups_; ++g) lent_[g][r] = theirs[g + 1];
  }
}

void KeyExchange::exchange_keys(net::Deadline deadline) {
  std::vector<std::int64_t> to(num_ranks_), from(num_ranks_);
  std::int64_t num_lent = 0;
  for (std::size_t g = 0; g < num_groups_; ++g) {
    for (std::size_t r = 0; r < num_ranks_; ++r) {
      to[r] += asked_[g][r];
      from[r] += lent_[g][r];
      num_lent += lent_[g][r];
    }
  }
  lent_keys_.resize(static_cast<std::size_t>(num_lent));
  pipeline::exchange<Key>(group_, asked_keys_, to, lent_keys_, from, deadline);
  for (std::vector<Key>& keys : lent_of_group_) keys.clear();
  auto next = lent_keys_.begin();
  for (std::size_t r = 0; r < num_ranks_; ++r) {
    for (std::size_t g = 0; g < num_groups_; ++g) {
      const auto end = next + lent_[g][r];
      lent_of_group_[g].insert(lent_of_group_[g].end(), next, end);
      next = end;
    }
  }
}

}  // namespace satrap::pipeline
