#include "satrap/core/resource.h"

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "src/core/control_group.h"
#include "tests/support/temporary_directory.h"

namespace satrap {
namespace {

TEST(ResidentBytes, GrowWithTheMemoryThatIsTouched) {
  const std::int64_t before = resident_bytes();
  constexpr std::size_t kBytes = 64 << 20;
  const std::vector<char> memory(kBytes, 1);
  const std::int64_t after = resident_bytes();
  EXPECT_GT(before, 0);
  EXPECT_GT(after - before, static_cast<std::int64_t>(kBytes) / 2);
  EXPECT_EQ(memory.back(), 1);
}

TEST(CpuSeconds, CountTheWorkOfThisProcess) {
  const double before = cpu_seconds();
  while (cpu_seconds() - before < 0.005) {  // would not end if the time stood still
  }
  EXPECT_GT(cpu_seconds(), before);
}

TEST(NumCpus, FollowsTheAffinityOfTheThread) {
  EXPECT_GE(num_cpus(), 1);
  // In its own thread: affinity belongs to threads.
  std::jthread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(num_cpus(), 1);
  });
}

TEST(CpuQuota, ReadsBothVersionsOfControlGroups) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path() + "/" + name) << text;
  };
  EXPECT_EQ(cpu_quota(directory.path()), 0);  // no such files: no limit
  write("cpu.cfs_quota_us", "-1\n");
  write("cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(directory.path()), 0);
  write("cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(cpu_quota(directory.path()), 4);
  write("cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(directory.path()), 2);
  write("cpu.max", "10000 100000\n");
  EXPECT_EQ(cpu_quota(directory.path()), 1);
}

TEST(MemoryLimit, ReadsBothVersionsOfControlGroups) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path() + "/" + name) << text;
  };
  EXPECT_EQ(memory_limit(directory.path()), 0);
  write("memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(memory_limit(directory.path()), 1 << 30);
  write("memory.max", "536870912\n");
  EXPECT_EQ(memory_limit(directory.path()), 512 << 20);
}

TEST(MemoryLimit, MaxIsNoLimit) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/memory.max") << "max\n";
  EXPECT_EQ(memory_limit(directory.path()), 0);
}

TEST(MemoryBytes, AreThoseOfTheMachineOrOfItsContainer) {
  EXPECT_GT(memory_bytes(), resident_bytes());
  if (memory_limit_bytes() > 0) {
    EXPECT_EQ(memory_bytes(), memory_limit_bytes());
  }
}

TEST(CpuQuota, MaxIsNoLimit) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/cpu.max") << "max 100000\n";
  EXPECT_EQ(cpu_quota(directory.path()), 0);
}

}  // namespace
}  // namespace satrap
