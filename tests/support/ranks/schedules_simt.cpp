#include "tests/support/ranks/ranks.h"
#include "tests/support/simt/executor.h"

namespace satrap::collective {

void set_schedule(std::uint64_t seed) { simt::set_seed(seed); }

}  // namespace satrap::collective
