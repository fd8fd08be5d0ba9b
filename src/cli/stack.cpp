#include "src/cli/stack.h"

#include <algorithm>

#include <pthread.h>
#include <sys/resource.h>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::cli {

void require_stack() {
  constexpr rlim_t kLeast = rlim_t{1} << 20, kUsual = rlim_t{8} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return;  // or unlimited
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, kUsual);
  if (limit.rlim_cur < kLeast || ::setrlimit(RLIMIT_STACK, &limit) != 0) {
    throw Error(ErrorCode::kUnavailable,
                concat("the system's limit of a stack is ",
                       format_bytes(static_cast<std::int64_t>(before)), " (`ulimit -s`): at least ",
                       format_bytes(static_cast<std::int64_t>(kLeast)), " are needed"));
  }
  pthread_attr_t threads;  // their size was fixed when the program was loaded
  if (::pthread_attr_init(&threads) != 0) return;
  ::pthread_attr_setstacksize(&threads, limit.rlim_cur);
  ::pthread_setattr_default_np(&threads);
  ::pthread_attr_destroy(&threads);
}

}  // namespace satrap::cli
