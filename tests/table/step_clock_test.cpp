#include "satrap/table/step_clock.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "tests/support/sanitized.h"

namespace satrap::table {
namespace {

/// Explores every order of events that ranks and a shard can produce, and compares the clock in
/// each state with what the training mode of `rules` requires. `clock`: the rules of the clock, if
/// they differ. `wishes`: ranks ask for newer rows than the bound demands.
class AllOrders {
 public:
  AllOrders(const StepClock::Rules& rules,
            std::int64_t num_steps,
            const std::optional<StepClock::Rules>& clock = {},
            bool wishes = false)
      : rules_(rules), last_(rules.first_step + num_steps - 1), wishes_(wishes) {
    State state;
    state.applied = rules.first_step - 1;
    state.ranks.assign(static_cast<std::size_t>(rules.num_ranks),
                       {state.applied, state.applied, false});
    visit(state, StepClock(clock.value_or(rules)));
  }

  /// The first violation of the mode; empty if there is none.
  const std::string& violation() const { return violation_; }
  std::size_t num_states() const { return seen_.size(); }
  std::int64_t largest_staleness() const { return largest_; }

 private:
  using Rank = std::tuple<std::int64_t, std::int64_t, bool>;  // read, pushed, has ended
  struct State {
    std::int64_t applied = 0;
    std::vector<Rank> ranks;
    auto operator<=>(const State&) const = default;
  };

  void visit(const State& state, const StepClock& clock) {
    if (!violation_.empty() || !seen_.insert(state).second) return;
    require(clock.applied() == state.applied, "steps are counted");
    bool goes_on = false;
    for (std::size_t r = 0; r < state.ranks.size(); ++r) {
      const auto rank = static_cast<std::int64_t>(r);
      const auto [read, pushed, ended] = state.ranks[r];
      const std::int64_t wish = wishes_ ? wish_of(rank, read + 1) : 0;
      const bool is_new_enough =
          state.applied >= read - tau(read + 1) && (rules_.deterministic || state.applied >= wish);
      const bool may_read =
          rules_.async || (is_new_enough && (!rules_.in_step_order || all_have_read(state, read)));
      require(clock.may_read(read + 1, wish) == may_read, "a read is allowed when it should be");
      if (!violation_.empty()) return;
      if (may_read && read < last_) {
        check_read(state, read + 1);
        goes_on = true;
        branch(state, clock, [&](State& s, StepClock& c) {
          ++std::get<0>(s.ranks[r]);
          c.note_read(rank, read + 1);
        });
      }
      if (pushed < read) {
        goes_on = true;
        branch(state, clock, [&](State& s, StepClock& c) {
          ++std::get<1>(s.ranks[r]);
          c.note_pushed(rank, pushed + 1);
          if (rules_.async) s.applied = least_pushed(s);
        });
      }
      if (!ended) {
        goes_on = true;
        branch(state, clock, [&](State& s, StepClock& c) {
          std::get<2>(s.ranks[r]) = true;
          c.note_last_read(rank, last_);
        });
      }
    }
    require(clock.may_apply() == is_due(state), "an update is allowed when it should be");
    if (!violation_.empty()) return;
    if (clock.may_apply()) {
      goes_on = true;
      branch(state, clock, [&](State& s, StepClock& c) {
        ++s.applied;
        c.note_applied();
      });
    }
    // No rank waits forever: when nothing more can happen, all updates are applied.
    if (!goes_on) require(state.applied == last_, "everything is applied in the end");
  }

  template <class Change>
  void branch(const State& state, const StepClock& clock, Change&& change) {
    State next = state;
    StepClock next_clock = clock;
    change(next, next_clock);
    visit(next, next_clock);
  }

  void check_read(const State& state, std::int64_t step) {
    const std::int64_t staleness = step - 1 - state.applied;
    largest_ = std::max(largest_, staleness);
    require(staleness >= 0, "nothing is read from the future");
    if (rules_.async) return;
    require(staleness <= tau(step), "the bound is kept");
    if (!rules_.deterministic) return;
    require(state.applied == std::max(rules_.first_step - 1, step - 1 - tau(step)),
            "the version is exact");
  }

  /// E_v that the rank wants at least: of the step before, or one or two steps older.
  static std::int64_t wish_of(std::int64_t rank, std::int64_t step) {
    return step - 1 - (rank + step * 2) % 3;
  }

  /// By trying, up to the maximum: min(max, the largest b with b <= factor * √step).
  std::int64_t tau(std::int64_t step) const {
    const StalenessBound& bound = rules_.staleness;
    if (bound.factor() == 0.0) return bound.max();
    std::int64_t b = 0;
    while (b < bound.max() && static_cast<double>((b + 1) * (b + 1)) <=
                                  bound.factor() * bound.factor() * static_cast<double>(step)) {
      ++b;
    }
    return b;
  }

  void require(bool holds, const char* what) {
    if (!holds && violation_.empty()) violation_ = what;
  }

  bool is_due(const State& state) const {
    if (rules_.async) return false;
    const std::int64_t step = state.applied + 1;
    return std::ranges::all_of(state.ranks, [&](const Rank& rank) {
      const auto [read, pushed, ended] = rank;
      // The next lookup of the rank is to have this update too.
      const bool all_read = read - tau(read + 1) >= step || (ended && read == last_);
      return pushed >= step && (!rules_.deterministic || all_read);
    });
  }

  bool all_have_read(const State& state, std::int64_t step) const {
    return std::ranges::all_of(state.ranks, [&](const Rank& rank) {
      const auto [read, pushed, ended] = rank;
      return read >= step || (ended && read == last_);
    });
  }

  static std::int64_t least_pushed(const State& state) {
    std::int64_t least = std::get<1>(state.ranks[0]);
    for (const auto& rank : state.ranks) least = std::min(least, std::get<1>(rank));
    return least;
  }

  const StepClock::Rules rules_;
  const std::int64_t last_;
  const bool wishes_;
  std::set<State> seen_;
  std::string violation_;
  std::int64_t largest_ = 0;
};

TEST(StepClock, PullsInTheOrderOfStepsKeepTheBoundAndComeToAnEnd) {
  for (const std::int64_t staleness : {0, 1, 4}) {
    for (const bool deterministic : {false, true}) {
      const AllOrders orders({.num_ranks = 2,
                              .staleness = staleness,
                              .deterministic = deterministic,
                              .in_step_order = true},
                             6);
      EXPECT_EQ(orders.violation(), "");
      EXPECT_EQ(orders.largest_staleness(), staleness);
    }
  }
}

TEST(StepClock, EveryOrderOfEventsKeepsTheBoundAndComesToAnEnd) {
  for (const std::int64_t num_ranks : {1, 2, 3}) {
    for (const std::int64_t staleness : {0, 1, 2, 4}) {
      for (const bool deterministic : {false, true}) {
        for (const std::int64_t first_step : {1, 101}) {
          if (num_ranks == 3 && kSanitized) continue;
          const std::int64_t num_steps = num_ranks == 3 || kSanitized ? 4 : 6;
          const AllOrders orders({.num_ranks = num_ranks,
                                  .staleness = staleness,
                                  .deterministic = deterministic,
                                  .first_step = first_step},
                                 num_steps);
          EXPECT_EQ(orders.violation(), "");
          EXPECT_GT(orders.num_states(), 10U);
          // The bound is reached: it delays nothing more than necessary.
          EXPECT_EQ(orders.largest_staleness(), std::min(staleness, num_steps - 1));
        }
      }
    }
  }
}

TEST(StepClock, EveryOrderKeepsABoundThatGrowsWithTheSteps) {
  for (const std::int64_t num_ranks : {1, 2}) {
    for (const double factor : {0.5, 1.0}) {
      for (const bool deterministic : {false, true}) {
        for (const bool in_step_order : {false, true}) {
          // Bounds 0 0 0 1 …, 1 1 1 2 …; from step 13 on: 1 1 1 2 2 2, 3 …
          for (const std::int64_t first_step : {1, 13}) {
            const AllOrders orders({.num_ranks = num_ranks,
                                    .staleness = {3, factor},
                                    .deterministic = deterministic,
                                    .first_step = first_step,
                                    .in_step_order = in_step_order},
                                   6);
            EXPECT_EQ(orders.violation(), "") << "factor " << factor << " from " << first_step;
            EXPECT_EQ(orders.largest_staleness(),
                      factor == 1.0 ? (first_step == 1 ? 2 : 3) : (first_step == 1 ? 1 : 2));
          }
        }
      }
    }
  }
}

TEST(StepClock, EveryOrderComesToAnEndThoughRanksWaitForNewerRows) {
  for (const std::int64_t num_ranks : {1, 2, 3}) {
    for (const bool deterministic : {false, true}) {
      for (const bool in_step_order : {false, true}) {
        const AllOrders orders({.num_ranks = num_ranks,
                                .staleness = 4,
                                .deterministic = deterministic,
                                .in_step_order = in_step_order},
                               num_ranks == 3 ? 4 : 6, {}, /*wishes=*/true);
        EXPECT_EQ(orders.violation(), "");
        EXPECT_LE(orders.largest_staleness(), deterministic ? 4 : 2);
      }
    }
  }
}

TEST(StepClock, AWrongOrderIsNoticed) {
  const StepClock::Rules mode = {.num_ranks = 2, .staleness = 1, .deterministic = true};
  StepClock::Rules wrong = mode;
  wrong.enforce_bound = false;
  EXPECT_EQ(AllOrders(mode, 4, wrong).violation(), "a read is allowed when it should be");
  wrong = mode;
  wrong.deterministic = false;
  EXPECT_EQ(AllOrders(mode, 4, wrong).violation(), "an update is allowed when it should be");
  wrong = mode;
  wrong.staleness = 2;
  EXPECT_NE(AllOrders(mode, 4, wrong).violation(), "");
  wrong.staleness = {1, 0.5};
  EXPECT_NE(AllOrders(mode, 4, wrong).violation(), "");
  const StepClock::Rules growing = {.staleness = {2, 1.0}, .deterministic = true};
  wrong = growing;
  wrong.staleness = 2;
  EXPECT_NE(AllOrders(growing, 4, wrong).violation(), "");
  wrong.staleness = 1;
  EXPECT_NE(AllOrders(growing, 6, wrong).violation(), "");
}

TEST(StepClock, AsyncNeverWaits) {
  for (const std::int64_t num_ranks : {1, 2, 3}) {
    const AllOrders orders({.num_ranks = num_ranks, .async = true}, 4);
    EXPECT_EQ(orders.violation(), "");
    EXPECT_EQ(orders.largest_staleness(), 3);
  }
}

TEST(StepClock, WithoutTheBoundReadsRunAhead) {
  StepClock clock({.staleness = 1, .enforce_bound = false});
  for (std::int64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(clock.may_read(step));
    clock.note_read(0, step);
  }
  EXPECT_EQ(clock.applied(), 0);
}

TEST(StepClock, RefusesWhatIsOutOfOrder) {
  StepClock clock({.num_ranks = 2, .staleness = 1});
  EXPECT_THROW(clock.note_pushed(0, 1), Error);  // not read
  clock.note_read(0, 1);
  EXPECT_THROW(clock.note_read(0, 1), Error);
  EXPECT_THROW(clock.note_read(0, 3), Error);
  clock.note_read(0, 2);
  EXPECT_THROW(clock.note_read(0, 3), Error);  // beyond the bound
  EXPECT_THROW(clock.note_pushed(0, 2), Error);
  EXPECT_THROW(clock.note_applied(), Error);
  EXPECT_THROW(clock.note_last_read(0, 1), Error);
}

}  // namespace
}  // namespace satrap::table
