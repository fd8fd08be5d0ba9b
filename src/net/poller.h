#pragma once

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "src/net/socket.h"

namespace satrap::net {

/// A descriptor that any thread can make readable, to end another thread's poll.
class WakeUp {
 public:
  WakeUp() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  int fd() const { return fd_.get(); }
  void notify() {
    const std::uint64_t one = 1;
    static_cast<void>(!write(fd_.get(), &one, sizeof(one)));
  }
  void clear() {
    std::uint64_t count = 0;
    static_cast<void>(!read(fd_.get(), &count, sizeof(count)));
  }

 private:
  Fd fd_;
};

}  // namespace satrap::net
