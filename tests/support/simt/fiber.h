#pragma once

#include <cstddef>
#include <memory>

namespace simt {

/// A stack and the place where it stopped: a thread of control that runs only when switched to, on
/// the thread that switches. It never ends: its function hands control away for good instead.
class Fiber {
 public:
  /// The calling thread, which already has a stack.
  Fiber();
  /// Own stack, to run `function()` from its start whenever `restart` was called.
  explicit Fiber(void (*function)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next switch to this fiber start its function anew. What was on its stack is
  /// forgotten without destructors: code that runs on fibers owns nothing. Costs AddressSanitizer
  /// the memory it keeps for the fiber's frames, so not for what happens often.
  void restart();

  /// Leaves `from`, which must be the running fiber, and goes on with `to` where it stopped.
  static void switch_between(Fiber& from, Fiber& to);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace simt
