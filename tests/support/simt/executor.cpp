#include "tests/support/simt/executor.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <sstream>
#include <vector>

#include "tests/support/simt/fiber.h"

namespace simt {

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kPattern = 0xFF;  // as a float: NaN

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::kSyncWarp:
      return "__syncwarp";
    case Collective::kShuffle:
      return "__shfl_sync";
    case Collective::kBallot:
      return "__ballot_sync";
    case Collective::kMatch:
      return "__match_any_sync";
    case Collective::kReduce:
      return "__reduce_sync";
  }
  return "?";
}

std::string text(std::source_location where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

std::string hex(std::uint32_t mask) {
  std::ostringstream out;
  out << "0x" << std::hex << mask;
  return out.str();
}

/// Lanes of one warp on their way through one collective.
struct Meeting {
  std::uint32_t mask = 0, arrived = 0, to_leave = 0;
  Collective kind{};
  std::source_location where;
  std::uint64_t values[kWarpSize] = {};
};

struct Warp {
  std::deque<Meeting> meetings;  // addresses stay; reused when empty
  std::uint32_t ended = 0;       // lanes
};

struct Lane {
  explicit Lane(void (*function)()) : fiber(function) {}
  Fiber fiber;
  Place place;
  unsigned index = 0;  // within the block
  bool ended = true;
  Meeting* meeting = nullptr;  // the last one, still to be left
  const char* waits_for = "";  // name of the collective
  std::source_location waits_at;
};

class Block;
thread_local Block* current = nullptr;
std::uint64_t switches = 0;
std::mt19937_64 generator;
bool shuffled = false;

std::uint64_t draw(std::uint64_t bound) { return shuffled ? generator() % bound : 0; }

/// The lanes of the running block; reused from block to block.
class Block {
 public:
  explicit Block(const Launch& launch, const std::function<void()>& kernel)
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

  void run(Dim3 index) {
    const Dim3 dim = launch_.block;
    std::memset(shared_.data(), kPattern, shared_.size());
    runnable_.clear();
    for (Warp& warp : warps_) warp = Warp{};
    at_barrier_ = 0;
    for (unsigned i = 0; i < dim.count(); ++i) {
      Lane& lane = *pool()[i];
      if (!lane.ended) lane.fiber.restart();  // a Fault left it in the middle of something
      lane.place = {Dim3(i % dim.x, i / dim.x % dim.y, i / (dim.x * dim.y)), index, dim,
                    launch_.grid, static_cast<int>(i % kWarpSize)};
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

  Lane& lane() { return *running_; }
  std::byte* dynamic_shared() { return shared_.data() + kGuardBytes; }

  std::span<const std::uint64_t, kWarpSize> exchange(Collective kind,
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
    if ((mask & ~existing(me.index / kWarpSize)) != 0) {
      note(std::string(name_of(kind)) + " with mask " + hex(mask) + ", beyond the block", where);
      stop();
    }
    if ((mask & warp.ended) != 0) {
      note(std::string(name_of(kind)) + " waits for lanes " + hex(mask & warp.ended) +
               ", which have ended",
           where);
      stop();
    }
    Meeting& meeting = join(warp, kind, mask, bit, where);
    meeting.values[me.place.lane] = value;
    me.meeting = &meeting;
    if (meeting.arrived == mask) {
      meeting.to_leave = mask;
      wake(me.index / kWarpSize * kWarpSize, mask & ~bit);
      // The one who came last has no right to go on first.
      preempt();
    } else {
      wait(name_of(kind), where);
    }
    return std::span<const std::uint64_t, kWarpSize>(meeting.values);
  }

  int barrier(bool predicate, std::source_location where) {
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
        wake(first, existing(first / kWarpSize) & ~bit_within(first));
      }
      preempt();
    } else {
      wait("__syncthreads", where);
    }
    return barrier_result_;
  }

  void preempt() {
    if (!shuffled || generator() % 2 == 0) return;
    runnable_.push_back(lane().index);
    yield();
  }

  /// What the running lane did wrong. stop() must follow, in a statement of its own: nothing that
  /// owns memory may be alive on the stack that it abandons.
  void note(const std::string& what, std::source_location where) {
    failure_ = describe(lane()) + ": " + what + " (" + text(where) + ")";
  }
  [[noreturn]] void stop() {
    yield();
    __builtin_unreachable();
  }

  /// Runs one lane, on its fiber: the kernel, from its start to the switch at which the next block
  /// finds the fiber.
  void lane_main() {
    kernel_();
    Lane& me = lane();
    leave_meeting(me);
    --num_alive_;
    Warp& warp = warps_[me.index / kWarpSize];
    warp.ended |= std::uint32_t{1} << me.place.lane;
    for (const Meeting& meeting : warp.meetings) {
      const bool waiting = meeting.arrived != 0 && meeting.to_leave == 0;
      if (waiting && (meeting.mask & warp.ended) != 0) {
        note(std::string("ended, while lanes wait for it in ") + name_of(meeting.kind),
             meeting.where);
        stop();
      }
    }
    if (at_barrier_ != 0) {
      note("ended, while lanes wait for it in __syncthreads", barrier_where_);
      stop();
    }
    me.ended = true;
    yield();
  }

 private:
  static std::vector<std::unique_ptr<Lane>>& pool() {
    thread_local std::vector<std::unique_ptr<Lane>> lanes;
    return lanes;
  }

  std::uint32_t existing(unsigned warp) const {
    const unsigned lanes = std::min<unsigned>(kWarpSize, launch_.block.count() - warp * kWarpSize);
    return lanes == kWarpSize ? kFullMask : (std::uint32_t{1} << lanes) - 1;
  }

  /// The running lane's bit, if it is in the warp whose first lane is `first`.
  std::uint32_t bit_within(std::uint32_t first) {
    return lane().index / kWarpSize * kWarpSize == first ? std::uint32_t{1} << lane().place.lane
                                                         : 0;
  }

  void step() {
    const std::size_t at = static_cast<std::size_t>(draw(runnable_.size()));
    const unsigned index = runnable_[at];
    if (shuffled) {
      runnable_[at] = runnable_.back();
      runnable_.pop_back();
    } else {
      runnable_.pop_front();
    }
    running_ = pool()[index].get();
    ++switches;
    Fiber::switch_between(main_, running_->fiber);
  }

  void yield() { Fiber::switch_between(running_->fiber, main_); }

  void wait(const char* what, std::source_location where) {
    lane().waits_for = what;
    lane().waits_at = where;
    yield();
  }

  void wake(unsigned first, std::uint32_t lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const unsigned index = first + static_cast<unsigned>(__builtin_ctz(lanes));
      runnable_.push_back(index);
    }
  }

  Meeting& join(Warp& warp,
                Collective kind,
                std::uint32_t mask,
                std::uint32_t bit,
                std::source_location where) {
    for (Meeting& meeting : warp.meetings) {
      if (meeting.to_leave != 0 || meeting.arrived == 0 || (meeting.mask & mask) == 0) continue;
      if (meeting.mask != mask || meeting.kind != kind) {
        note(std::string(name_of(kind)) + " with mask " + hex(mask) + ", while lanes wait in " +
                 name_of(meeting.kind) + " at " + text(meeting.where) + " with mask " +
                 hex(meeting.mask),
             where);
        stop();
      }
      meeting.arrived |= bit;
      return meeting;
    }
    Meeting* meeting = nullptr;
    for (Meeting& old : warp.meetings) {
      if (old.to_leave == 0 && old.arrived == 0) meeting = &old;
    }
    if (meeting == nullptr) meeting = &warp.meetings.emplace_back();
    meeting->mask = mask;
    meeting->arrived = bit;
    meeting->kind = kind;
    meeting->where = where;
    return *meeting;
  }

  static void leave_meeting(Lane& lane) {
    if (lane.meeting == nullptr) return;
    lane.meeting->to_leave &= ~(std::uint32_t{1} << lane.place.lane);
    if (lane.meeting->to_leave == 0) lane.meeting->arrived = 0;
    lane.meeting = nullptr;
  }

  std::string describe(const Lane& lane) const {
    const Place& p = lane.place;
    return launch_.name + ": block " + std::to_string(p.block.x) + ", thread " +
           std::to_string(lane.index) + " (lane " + std::to_string(p.lane) + ")";
  }

  std::string stuck() const {
    for (unsigned i = 0; i < launch_.block.count(); ++i) {
      const Lane& lane = *pool()[i];
      if (!lane.ended)
        return describe(lane) + ": waits for ever in " + lane.waits_for + " at " +
               text(lane.waits_at);
    }
    return launch_.name + ": stuck";
  }

  void check_guards() {
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

  const Launch& launch_;
  const std::function<void()>& kernel_;
  std::vector<std::byte> shared_;
  std::vector<Warp> warps_;
  std::deque<unsigned> runnable_;
  Fiber main_;
  Lane* running_ = nullptr;
  unsigned num_alive_ = 0;
  unsigned at_barrier_ = 0;
  int barrier_count_ = 0, barrier_result_ = 0;
  std::source_location barrier_where_;
  std::optional<std::string> failure_;
};

}  // namespace

void set_seed(std::uint64_t seed) {
  shuffled = seed != 0;
  generator.seed(seed);
}

void launch(const Launch& launch, const std::function<void()>& kernel) {
  const unsigned lanes = launch.block.count();
  if (launch.grid.count() == 0 || lanes == 0 || lanes > 1024) {
    throw Fault(launch.name + ": a grid of " + std::to_string(launch.grid.count()) + " blocks of " +
                std::to_string(lanes) + " threads");
  }
  std::vector<unsigned> order(launch.grid.count());
  for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
  if (shuffled) std::shuffle(order.begin(), order.end(), generator);
  Block block(launch, kernel);
  struct Restore {
    Block* before = current;
    ~Restore() { current = before; }
  } restore;
  current = &block;
  for (const unsigned i : order) {
    const Dim3 g = launch.grid;
    block.run(Dim3(i % g.x, i / g.x % g.y, i / (g.x * g.y)));
  }
}

std::uint64_t num_switches() { return switches; }

std::uint64_t draw_stream(std::uint64_t bound) { return draw(bound); }

const Place& place() { return current->lane().place; }

std::span<const std::uint64_t, kWarpSize> exchange(Collective kind,
                                                   std::uint32_t mask,
                                                   std::uint64_t value,
                                                   std::source_location where) {
  return current->exchange(kind, mask, value, where);
}

int barrier(bool predicate, std::source_location where) {
  return current->barrier(predicate, where);
}

void preempt() { current->preempt(); }

std::byte* dynamic_shared() { return current->dynamic_shared(); }

void fail(const char* what, std::source_location where) {
  current->note(what, where);
  current->stop();
}

}  // namespace simt
