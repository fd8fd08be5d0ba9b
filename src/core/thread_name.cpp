#include "satrap/core/thread_name.h"

#include <cstddef>

#include <pthread.h>

namespace satrap {

void set_thread_name(const std::string& name) {
  constexpr std::size_t kMaxLength = 15;
  pthread_setname_np(pthread_self(), name.substr(0, kMaxLength).c_str());
}

}  // namespace satrap
