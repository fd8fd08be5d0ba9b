#include "tests/support/simt/block.h"

#include <algorithm>
#include <cstring>

#include "tests/support/simt/schedule.h"

namespace simt {
namespace {

constexpr unsigned char kPattern = 0xFF;  // as a float: NaN

}  // namespace

Block::Block(const Launch& launch, const std::function<void()>& kernel)
    : launch_(launch),
      kernel_(kernel),
      shared_(launch.shared_bytes + 2 * kGuardBytes),
      warps_((launch.block.count() + kWarpSize - 1) / kWarpSize) {
  while (pool().size() < launch.block.count()) {
    pool().push_back(std::make_unique<Lane>([] {
      for (;;) current->lane_main();
    }));
  }
}

std::vector<std::unique_ptr<Lane>>& Block::pool() {
  thread_local std::vector<std::unique_ptr<Lane>> lanes;
  return lanes;
}

void Block::run(Dim3 index) {
  const Dim3 dim = launch_.block;
  std::memset(shared_.data(), kPattern, shared_.size());
  runnable_.clear();
  for (unsigned w = 0; w < warps_.size(); ++w) warps_[w].reset(existing(w));
  at_barrier_ = 0;
  for (unsigned i = 0; i < dim.count(); ++i) {
    Lane& lane = *pool()[i];
    if (!lane.ended) lane.fiber.restart();  // a Fault interrupted it
    lane.place = {Dim3(i % dim.x, i / dim.x % dim.y, i / (dim.x * dim.y)), index, dim, launch_.grid,
                  static_cast<int>(i % kWarpSize)};
    lane.index = i;
    lane.ended = false;
    lane.meeting = nullptr;
    runnable_.push_back(i);
  }
  num_alive_ = dim.count();
  while (!runnable_.empty() && !failure_) step();
  if (!failure_ && num_alive_ != 0) failure_ = stuck();
  if (!failure_) check_guards();
  if (failure_) throw Fault(*failure_);
}

std::span<const std::uint64_t, kWarpSize> Block::exchange(Collective kind,
                                                          std::uint32_t mask,
                                                          std::uint64_t value,
                                                          std::source_location where) {
  Lane& me = lane();
  Warp& warp = warps_[me.index / kWarpSize];
  const std::uint32_t bit = std::uint32_t{1} << me.place.lane;
  leave_meeting(me);
  if ((mask & bit) == 0) {
    note(std::string(name_of(kind)) + " with mask " + hex(mask) + ", which leaves out its caller",
         where);
    stop();
  }
  if ((mask & ~warp.existing) != 0) {
    note(std::string(name_of(kind)) + " with mask " + hex(mask) + ", beyond the block", where);
    stop();
  }
  if ((mask & warp.ended) != 0) {
    note(std::string(name_of(kind)) + " waits for lanes " + hex(mask & warp.ended) +
             ", which have ended",
         where);
    stop();
  }
  Meeting& meeting = join(warp, kind, mask, where);
  meeting.arrived |= bit;
  meeting.values[me.place.lane] = value;
  me.meeting = &meeting;
  if (meeting.arrived == mask) {
    meeting.to_leave = mask;
    wake(me.index / kWarpSize * kWarpSize, mask & ~bit);
    // The last lane to arrive need not continue first.
    preempt();
  } else {
    wait(name_of(kind), where);
  }
  return std::span<const std::uint64_t, kWarpSize>(meeting.values);
}

int Block::barrier(bool predicate, std::source_location where) {
  if (num_alive_ != launch_.block.count()) {
    note("__syncthreads after lanes of the block have ended", where);
    stop();
  }
  if (at_barrier_ == 0) {
    barrier_where_ = where;
    barrier_count_ = 0;
  } else if (barrier_where_.line() != where.line() || barrier_where_.column() != where.column()) {
    note("__syncthreads, while other lanes wait in the one at " + text(barrier_where_), where);
    stop();
  }
  barrier_count_ += predicate ? 1 : 0;
  if (++at_barrier_ == num_alive_) {
    at_barrier_ = 0;
    barrier_result_ = barrier_count_;
    for (std::uint32_t first = 0; first < launch_.block.count(); first += kWarpSize) {
      wake(first, warps_[first / kWarpSize].existing & ~bit_within(first));
    }
    preempt();
  } else {
    wait("__syncthreads", where);
  }
  return barrier_result_;
}

void Block::preempt() {
  if (!schedule.shuffled || schedule.generator() % 2 == 0) return;
  runnable_.push_back(lane().index);
  yield();
}

void Block::note(const std::string& what, std::source_location where) {
  failure_ = describe(lane()) + ": " + what + " (" + text(where) + ")";
}

void Block::stop() {
  yield();
  __builtin_unreachable();
}

/// Runs one lane on its fiber: the kernel, from its start to the switch at which the next block
/// finds the fiber.
void Block::lane_main() {
  kernel_();
  Lane& me = lane();
  leave_meeting(me);
  --num_alive_;
  Warp& warp = warps_[me.index / kWarpSize];
  warp.ended |= std::uint32_t{1} << me.place.lane;
  if (const Meeting* meeting = warp.waiting(warp.ended)) {
    note(std::string("ended, while lanes wait for it in ") + name_of(meeting->kind),
         meeting->where);
    stop();
  }
  if (at_barrier_ != 0) {
    note("ended, while lanes wait for it in __syncthreads", barrier_where_);
    stop();
  }
  me.ended = true;
  yield();
}

std::uint32_t Block::existing(unsigned warp) const {
  const unsigned lanes = std::min<unsigned>(kWarpSize, launch_.block.count() - warp * kWarpSize);
  return lanes == kWarpSize ? kFullMask : (std::uint32_t{1} << lanes) - 1;
}

/// The running lane's bit, if the lane is in the warp whose first lane is `first`.
std::uint32_t Block::bit_within(std::uint32_t first) {
  return lane().index / kWarpSize * kWarpSize == first ? std::uint32_t{1} << lane().place.lane : 0;
}

void Block::step() {
  const std::size_t at = static_cast<std::size_t>(schedule.draw(runnable_.size()));
  const unsigned index = runnable_[at];
  if (schedule.shuffled) {
    runnable_[at] = runnable_.back();
    runnable_.pop_back();
  } else {
    runnable_.pop_front();
  }
  running_ = pool()[index].get();
  ++schedule.num_switches;
  Fiber::switch_between(main_, running_->fiber);
}

void Block::yield() { Fiber::switch_between(running_->fiber, main_); }

void Block::wait(const char* what, std::source_location where) {
  lane().waits_for = what;
  lane().waits_at = where;
  yield();
}

void Block::wake(unsigned first, std::uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const unsigned index = first + static_cast<unsigned>(__builtin_ctz(lanes));
    runnable_.push_back(index);
  }
}

Meeting& Block::join(Warp& warp, Collective kind, std::uint32_t mask, std::source_location where) {
  Meeting* const meeting = warp.waiting(mask);
  if (meeting == nullptr) return warp.begin(kind, mask, where);
  if (meeting->mask != mask || meeting->kind != kind) {
    note(std::string(name_of(kind)) + " with mask " + hex(mask) + ", while lanes wait in " +
             name_of(meeting->kind) + " at " + text(meeting->where) + " with mask " +
             hex(meeting->mask),
         where);
    stop();
  }
  return *meeting;
}

void Block::leave_meeting(Lane& lane) {
  if (lane.meeting == nullptr) return;
  lane.meeting->leave(std::uint32_t{1} << lane.place.lane);
  lane.meeting = nullptr;
}

std::string Block::describe(const Lane& lane) const {
  const Place& p = lane.place;
  return launch_.name + ": block " + std::to_string(p.block.x) + ", thread " +
         std::to_string(lane.index) + " (lane " + std::to_string(p.lane) + ")";
}

std::string Block::stuck() const {
  for (unsigned i = 0; i < launch_.block.count(); ++i) {
    const Lane& lane = *pool()[i];
    if (!lane.ended) {
      return describe(lane) + ": waits for ever in " + lane.waits_for + " at " +
             text(lane.waits_at);
    }
  }
  return launch_.name + ": stuck";
}

void Block::check_guards() {
  const auto broken = [&](std::size_t begin) {
    return std::any_of(shared_.begin() + static_cast<std::ptrdiff_t>(begin),
                       shared_.begin() + static_cast<std::ptrdiff_t>(begin + kGuardBytes),
                       [](std::byte b) { return b != std::byte{kPattern}; });
  };
  if (broken(0) || broken(kGuardBytes + launch_.shared_bytes)) {
    failure_ = launch_.name + ": writes outside of its " + std::to_string(launch_.shared_bytes) +
               " bytes of dynamic shared memory";
  }
}

}  // namespace simt
