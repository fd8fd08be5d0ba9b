#include "satrap/core/thread_name.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

namespace satrap {
namespace {

std::string name_of_this_thread() {
  char name[64] = {};
  EXPECT_EQ(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
  return name;
}

/// What a new thread is called once it has taken this name.
std::string name_taken(const std::string& name) {
  std::string taken;
  std::thread([&] {
    set_thread_name(name);
    taken = name_of_this_thread();
  }).join();
  return taken;
}

TEST(ThreadName, IsThatOfTheCallingThreadAlone) {
  const std::string before = name_of_this_thread();
  EXPECT_EQ(name_taken("net-work-3"), "net-work-3");
  EXPECT_EQ(name_of_this_thread(), before);
}

TEST(ThreadName, IsCutToTheFifteenBytesOfTheSystem) {
  EXPECT_EQ(name_taken("fifteen-letters"), "fifteen-letters");
  EXPECT_EQ(name_taken("gradient-reducer-12"), "gradient-reduce");
}

}  // namespace
}  // namespace satrap
