#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "satrap/core/hash.h"
#include "tests/ps/shard_fixture.h"

namespace satrap::ps {

/// A rank that keeps copies of rows in a map, some of which it forgets at random. It pulls ahead,
/// takes answers in the order of steps, and remembers what it believes of each copy.
class CopyingRank {
 public:
  struct Copy {
    bool has_arrived = false;
    std::int64_t version = -1;
    std::vector<float> weights;
  };

  CopyingRank(ShardClient& client,
              const Oracle& oracle,
              std::int64_t rank,
              const Cluster& cluster,
              double forgets,
              std::int64_t max_pulls = 8)
      : client_(client),
        oracle_(oracle),
        rank_(rank),
        cluster_(cluster),
        forgets_(forgets),
        window_(std::min(max_pulls, cluster.job.staleness.max() + 2)) {}

  /// What a step reads: each key's copy. Returns the gradients.
  using Gradient = std::function<
      void(std::int64_t step, Key key, const Copy& copy, std::int64_t dim, float* gradient)>;

  void train(const Gradient& gradient) {
    const std::int64_t first = cluster_.job.first_step;
    const std::int64_t window = window_;
    std::vector<StepRows> rows(static_cast<std::size_t>(window + 1));
    std::int64_t pulled = first - 1, pushed = first - 1;
    for (std::int64_t step = first; step <= cluster_.num_steps; ++step) {
      for (; pulled < std::min(cluster_.num_steps, step + window - 1); ++pulled) {
        pull(pulled + 1, rows[slot(pulled + 1, window)]);
      }
      if (pulled == cluster_.num_steps && !has_ended_) client_.end_pulls(pulled);
      has_ended_ = has_ended_ || pulled == cluster_.num_steps;
      StepRows& of_step = rows[slot(step, window)];
      client_.wait(of_step);
      take(of_step);
      client_.prepare_push(of_step);
      const std::vector<Key>& keys = in_flight_.front();
      for (std::size_t u = 0; u < keys.size(); ++u) {
        const std::int64_t dim = oracle_.spec_of(keys[u]).dim;
        gradient(step, keys[u], copies_.at(keys[u]), dim, of_step.gradients()[u]);
      }
      in_flight_.pop_front();
      client_.push(step, of_step, false);
      const std::int64_t spare = cluster_.job.staleness.max() > 0 ? 1 : 0;
      for (; pushed < step - spare; ++pushed) client_.wait_pushed(rows[slot(pushed + 1, window)]);
    }
    for (; pushed < cluster_.num_steps; ++pushed) {
      client_.wait_pushed(rows[slot(pushed + 1, window)]);
    }
  }

  std::int64_t num_sent() const { return num_sent_; }
  std::int64_t num_unchanged() const { return num_unchanged_; }
  std::int64_t num_kept() const { return num_kept_; }

 private:
  static std::size_t slot(std::int64_t step, std::int64_t window) {
    return static_cast<std::size_t>(step % (window + 1));
  }

  void pull(std::int64_t step, StepRows& rows) {
    const std::vector<Key> keys = keys_of_step(rank_, step, cluster_.num_ids);
    const RandomStream random{
        hash64(77, static_cast<std::uint64_t>(rank_), static_cast<std::uint64_t>(step))};
    // What no pull in flight needs may be forgotten.
    std::uint64_t n = 0;
    std::erase_if(copies_, [&](const auto& copy) {
      const bool is_needed = std::ranges::any_of(in_flight_, [&](const auto& needed) {
        return std::ranges::binary_search(needed, copy.first);
      });
      return !is_needed && random.uniform(n++) < forgets_;
    });
    std::vector<CopyAge> ages;
    for (const Key key : keys) {
      const auto [copy, is_new] = copies_.try_emplace(key);
      const Copy& found = copy->second;
      ages.push_back(is_new              ? kNoCopy
                     : found.has_arrived ? copy_age(step, found.version)
                                         : kUnknownAge);
    }
    // With few pulls in flight the rows are new, and copies of them young.
    client_.pull_changed(step, keys, ages, rows, std::max<std::int64_t>(0, step - window_));
    in_flight_.push_back(keys);
  }

  void take(const StepRows& rows) {
    const std::vector<Key>& keys = in_flight_.front();
    for (std::size_t u = 0; u < keys.size(); ++u) {
      Copy& copy = copies_.at(keys[u]);
      const std::int64_t version = rows.versions()[u];
      if (rows.weights()[u] != nullptr) {
        const auto dim = static_cast<std::size_t>(oracle_.spec_of(keys[u]).dim);
        copy.weights.assign(rows.weights()[u], rows.weights()[u] + dim);
        ++num_sent_;
      } else {
        ++(version == StepRows::kKept ? num_kept_ : num_unchanged_);
      }
      if (version != StepRows::kKept) copy.version = std::max(copy.version, version);
      copy.has_arrived = true;
    }
  }

  ShardClient& client_;
  const Oracle& oracle_;
  const std::int64_t rank_;
  const Cluster& cluster_;
  const double forgets_;
  const std::int64_t window_;  // pulls in flight
  std::map<Key, Copy> copies_;
  std::deque<std::vector<Key>> in_flight_;  // keys, oldest first
  bool has_ended_ = false;
  std::int64_t num_sent_ = 0, num_unchanged_ = 0, num_kept_ = 0;
};

}  // namespace satrap::ps
