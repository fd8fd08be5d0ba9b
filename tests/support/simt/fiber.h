#pragma once

#include <cstddef>
#include <memory>

namespace simt {

/// A stack and its point of suspension: a thread of control that runs only when switched to, on the
/// thread that switches. It never returns: its function makes a final switch instead.
class Fiber {
 public:
  /// The calling thread, which already has a stack.
  Fiber();
  /// A new stack, which runs `function()` from its start after each `restart`.
  explicit Fiber(void (*function)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next switch to this fiber restart its function. The stack is discarded without
  /// destructors: code on fibers must own nothing. AddressSanitizer leaks the memory that it keeps
  /// for the fiber's frames, so this is not for frequent use.
  void restart();

  /// Leaves `from`, which must be the running fiber, and continues `to` where it stopped.
  static void switch_between(Fiber& from, Fiber& to);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace simt
