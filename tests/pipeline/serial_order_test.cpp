#include "src/pipeline/serial_order.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace satrap::pipeline {
namespace {

using Action = SerialOrder::Action;
using Rules = table::StepClock::Rules;

/// Explores every order in which the planner, the dense stage and the thread that follows a
/// SerialOrder can progress, and compares each action with what the training mode of `mode`
/// requires. `order`: the rules of the SerialOrder.
class AllSerialOrders {
 public:
  AllSerialOrders(const Rules& mode, const Rules& order, std::int64_t num_steps)
      : mode_(mode), last_(mode.first_step + num_steps - 1), max_works_(mode.staleness.max() + 3) {
    const std::int64_t before = mode.first_step - 1;
    visit({before, before, before, before, before, false}, SerialOrder(order));
  }

  /// The first violation of the mode; empty if there is none.
  const std::string& violation() const { return violation_; }
  std::size_t num_states() const { return seen_.size(); }
  std::int64_t largest_staleness() const { return largest_; }

 private:
  struct State {
    std::int64_t planned, looked_up, taken, pushed, applied;  // steps
    bool is_closed;
    auto operator<=>(const State&) const = default;
  };

  void visit(const State& state, const SerialOrder& order) {
    if (!violation_.empty() || !seen_.insert(state).second) return;
    bool others_go_on = false;
    const auto branch = [&](auto&& change) {
      others_go_on = true;
      State next = state;
      change(next);
      visit(next, order);
    };
    if (!state.is_closed && state.planned < last_ && state.planned - state.applied < max_works_) {
      branch([](State& next) { ++next.planned; });
    }
    // The data may end after any step.
    if (!state.is_closed) branch([](State& next) { next.is_closed = true; });
    if (state.taken < state.looked_up && state.taken == state.pushed) {
      branch([](State& next) { ++next.taken; });
    }
    if (state.pushed < state.taken) branch([](State& next) { ++next.pushed; });
    act(state, order, others_go_on);
  }

  void act(State state, SerialOrder order, bool others_go_on) {
    if (!violation_.empty()) return;
    const bool is_idle = state.taken == state.pushed && state.looked_up == state.taken;
    const Action action = order.next({.num_planned = state.planned - state.looked_up,
                                      .num_looked_up = state.looked_up - state.taken,
                                      .num_gradients = state.pushed - state.applied,
                                      .is_closed = state.is_closed,
                                      .is_wanted = is_idle});
    if (!mode_.deterministic && action == Action::kLookUp) {
      require(state.looked_up == state.taken, "no lookup while another stands ready");
      require(is_idle || state.pushed == state.applied, "a lookup that can wait comes last");
    }
    switch (action) {
      case Action::kLookUp:
        check_lookup(state);
        ++state.looked_up;
        order.note_looked_up();
        return visit(state, order);
      case Action::kUpdate:
        require(state.applied < state.pushed, "an update has its gradient");
        ++state.applied;
        order.note_updated();
        require(order.applied() == state.applied, "updates are counted");
        return visit(state, order);
      case Action::kEnd:
        return require(state.is_closed && state.applied == state.planned,
                       "everything is applied in the end");
      case Action::kWait:
        return require(others_go_on, "nobody waits for ever");
    }
  }

  void check_lookup(const State& state) {
    require(state.looked_up < state.planned, "a lookup has its plan");
    const std::int64_t staleness = state.looked_up - state.applied;
    largest_ = std::max(largest_, staleness);
    const std::int64_t bound = mode_.staleness.at(state.looked_up + 1);
    require(staleness <= bound, "the bound is kept");
    if (!mode_.deterministic) return;
    require(state.applied == std::max(mode_.first_step - 1, state.looked_up - bound),
            "the version is exact");
  }

  void require(bool holds, const char* what) {
    if (!holds && violation_.empty()) violation_ = what;
  }

  const Rules mode_;
  const std::int64_t last_, max_works_;
  std::set<State> seen_;
  std::string violation_;
  std::int64_t largest_ = 0;
};

TEST(SerialOrder, EveryOrderOfEventsKeepsTheBoundAndComesToAnEnd) {
  for (const std::int64_t staleness : {0, 1, 2, 4}) {
    for (const bool deterministic : {false, true}) {
      for (const std::int64_t first_step : {1, 101}) {
        const Rules rules = {
            .staleness = staleness, .deterministic = deterministic, .first_step = first_step};
        const AllSerialOrders orders(rules, rules, 7);
        EXPECT_EQ(orders.violation(), "") << "τ " << staleness;
        EXPECT_GT(orders.num_states(), 50U);
        // The bound is reached: it delays no lookup more than necessary.
        EXPECT_EQ(orders.largest_staleness(), staleness);
      }
    }
  }
}

TEST(SerialOrder, EveryOrderKeepsABoundThatGrowsWithTheSteps) {
  for (const double factor : {0.5, 1.0}) {
    for (const bool deterministic : {false, true}) {
      for (const std::int64_t first_step : {1, 13}) {
        const Rules rules = {
            .staleness = {3, factor}, .deterministic = deterministic, .first_step = first_step};
        const AllSerialOrders orders(rules, rules, 9);
        EXPECT_EQ(orders.violation(), "") << "factor " << factor;
        EXPECT_EQ(orders.largest_staleness(), rules.staleness.at(first_step + 8));
        Rules constant = rules;
        constant.staleness = 3;
        if (factor == 0.5) {
          EXPECT_EQ(AllSerialOrders(rules, constant, 9).violation(), "the bound is kept");
        }
      }
    }
  }
}

TEST(SerialOrder, AWrongOrderIsNoticed) {
  for (const bool deterministic : {false, true}) {
    const Rules mode = {.staleness = 2, .deterministic = deterministic};
    Rules wrong = mode;
    wrong.staleness = 3;
    EXPECT_EQ(AllSerialOrders(mode, wrong, 7).violation(), "the bound is kept");
    wrong = mode;
    wrong.enforce_bound = false;
    EXPECT_NE(AllSerialOrders(mode, wrong, 7).violation(), "");
  }
  const Rules mode = {.staleness = 2, .deterministic = true};
  EXPECT_EQ(AllSerialOrders(mode, {.staleness = 2}, 7).violation(), "the version is exact");
  EXPECT_EQ(AllSerialOrders(mode, {.staleness = 1, .deterministic = true}, 7).violation(),
            "the version is exact");
  // Updates wait for lookups of another rank, which never arrive.
  EXPECT_EQ(AllSerialOrders({.staleness = 2}, {.num_ranks = 2, .staleness = 2}, 7).violation(),
            "nobody waits for ever");
}

TEST(SerialOrder, AnUpdateComesFirstUnlessTheDenseStageWaits) {
  SerialOrder order({.staleness = 2});
  ASSERT_EQ(order.next({.num_planned = 3}), Action::kLookUp);
  order.note_looked_up();
  EXPECT_EQ(order.next({.num_planned = 2, .num_gradients = 1}), Action::kUpdate);
  EXPECT_EQ(order.next({.num_planned = 2, .num_gradients = 1, .is_wanted = true}), Action::kLookUp);
}

TEST(SerialOrder, NoLookupIsMadeWhileAnotherStandsReady) {
  SerialOrder order({.staleness = 2});
  ASSERT_EQ(order.next({.num_planned = 3}), Action::kLookUp);
  order.note_looked_up();
  EXPECT_EQ(order.next({.num_planned = 2, .num_looked_up = 1}), Action::kWait);
  EXPECT_EQ(order.next({.num_planned = 2}), Action::kLookUp);

  // deterministic reads exactly the version of the bound, so it may not wait.
  SerialOrder exact({.staleness = 2, .deterministic = true});
  ASSERT_EQ(exact.next({.num_planned = 3}), Action::kLookUp);
  exact.note_looked_up();
  EXPECT_EQ(exact.next({.num_planned = 2, .num_looked_up = 1}), Action::kLookUp);
}

}  // namespace
}  // namespace satrap::pipeline
