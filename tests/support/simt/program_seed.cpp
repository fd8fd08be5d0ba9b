// A whole program on the executor: SIMT_SEED is the seed of its schedules, and with it streams also
// continue while nobody waits for them.

#include <cstdlib>

#include "tests/support/simt/executor.h"

namespace {

[[maybe_unused]] const bool is_seeded = [] {
  if (const char* const seed = std::getenv("SIMT_SEED")) {
    simt::set_seed(std::strtoull(seed, nullptr, 10));
  }
  return true;
}();

}  // namespace
