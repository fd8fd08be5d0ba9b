#include "satrap/loader/loader_server.h"

#include <gtest/gtest.h>

#include "satrap/core/resource.h"

namespace satrap::loader {
namespace {

TEST(LoaderServerOptions, TheCpusAreDividedAmongTheRanks) {
  EXPECT_EQ(LoaderServerOptions{}.threads_for(1), num_cpus());
  EXPECT_EQ(LoaderServerOptions{}.threads_for(num_cpus()), 1);
  EXPECT_EQ(LoaderServerOptions{}.threads_for(2 * num_cpus()), 1);
  EXPECT_EQ(LoaderServerOptions{.num_threads = 3}.threads_for(2 * num_cpus()), 3);
}

}  // namespace
}  // namespace satrap::loader
