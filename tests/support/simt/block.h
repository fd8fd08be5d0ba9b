#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "tests/support/simt/executor.h"
#include "tests/support/simt/fiber.h"
#include "tests/support/simt/warp.h"

namespace simt {

struct Lane {
  explicit Lane(void (*function)()) : fiber(function) {}
  Fiber fiber;
  Place place;
  unsigned index = 0;  // within the block
  bool ended = true;
  Meeting* meeting = nullptr;  // the last one, which it has not left yet
  const char* waits_for = "";  // name of the collective
  std::source_location waits_at;
};

/// The lanes of the running block; reused from block to block.
class Block {
 public:
  Block(const Launch& launch, const std::function<void()>& kernel);

  /// The block whose lanes run on this thread; the caller of run() has set it.
  static inline thread_local constinit Block* current = nullptr;

  void run(Dim3 index);  // throws Fault

  // For the running lane.
  Lane& lane() { return *running_; }
  std::byte* dynamic_shared() { return shared_.data() + kGuardBytes; }
  std::span<const std::uint64_t, kWarpSize> exchange(Collective kind,
                                                     std::uint32_t mask,
                                                     std::uint64_t value,
                                                     std::source_location where);
  int barrier(bool predicate, std::source_location where);
  void preempt();

  /// Records the running lane's error. stop() must follow, in a separate statement: nothing that
  /// owns memory may be alive on the stack that it abandons.
  void note(const std::string& what, std::source_location where);
  [[noreturn]] void stop();

 private:
  static constexpr std::size_t kGuardBytes = 256;

  static std::vector<std::unique_ptr<Lane>>& pool();
  static void leave_meeting(Lane& lane);
  void lane_main();
  std::uint32_t existing(unsigned warp) const;
  std::uint32_t bit_within(std::uint32_t first);
  void step();
  void yield();
  void wait(const char* what, std::source_location where);
  void wake(unsigned first, std::uint32_t lanes);
  Meeting& join(Warp& warp, Collective kind, std::uint32_t mask, std::source_location where);
  std::string describe(const Lane& lane) const;
  std::string stuck() const;
  void check_guards();

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

}  // namespace simt
