#include <cmath>
#include <cstdlib>
#include <future>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/simt/nccl_ranks.h"

namespace {

using nccl_ranks::check;
using nccl_ranks::errors_of_ranks;
using nccl_ranks::errors_of_threads;
using nccl_ranks::new_id;
using nccl_ranks::Rank;
using nccl_ranks::run_ranks;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

TEST(SimtNcclFaults, TwoRanksOnADevice) {
  const ncclUniqueId id = new_id();
  const auto errors =
      errors_of_threads(3, [&](int number) { Rank r(id, number, 3, number == 1 ? 1 : 0); });
  EXPECT_THAT(errors,
              Each(HasSubstr("invalid usage: Duplicate GPU detected : rank 0 and rank 2 both "
                             "on CUDA device 0")));
}

TEST(SimtNcclFaults, RanksOfAnotherCommunicator) {
  const ncclUniqueId id = new_id();
  const auto errors =
      errors_of_threads(2, [&](int number) { Rank r(id, number, number == 0 ? 3 : 2, number); });
  EXPECT_THAT(errors[0] + errors[1], HasSubstr("rank 0 is one of 3"));
}

TEST(SimtNcclFaults, CollectivesThatDiffer) {
  const auto errors = [](const std::function<void(Rank&, float*)>& call) {
    return errors_of_ranks(2, [&](Rank& r) {
      call(r, r.array(std::vector<float>(8)));
      r.wait();
    });
  };
  EXPECT_THAT(
      errors([](Rank& r, float* values) {
        const std::size_t count = r.rank == 0 ? 4 : 5;
        check(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, r.comm, r.stream));
      }),
      Each(AllOf(HasSubstr("ranks differ"), HasSubstr("ncclAllReduce of 4 float32 by rank 0"),
                 HasSubstr("ncclAllReduce of 5 float32 by rank 1"))));
  EXPECT_THAT(errors([](Rank& r, float* values) {
                const ncclDataType_t type = r.rank == 0 ? ncclFloat32 : ncclInt32;
                check(ncclAllReduce(values, values, 4, type, ncclSum, r.comm, r.stream));
              }),
              Each(AllOf(HasSubstr("4 float32 by rank 0"), HasSubstr("4 int32 by rank 1"))));
  EXPECT_THAT(errors([](Rank& r, float* values) {
                if (r.rank == 0) {
                  check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
                } else {
                  check(ncclAllGather(values + 4, values, 4, ncclFloat32, r.comm, r.stream));
                }
              }),
              Each(AllOf(HasSubstr("ncclAllReduce of 4"), HasSubstr("ncclAllGather of 4"))));
}

TEST(SimtNcclFaults, ASendThatIsLargerThanItsReceive) {
  const auto errors = errors_of_ranks(2, [](Rank& r) {
    float* const values = r.array(std::vector<float>(8));
    if (r.rank == 0) check(ncclSend(values, 8, ncclFloat32, 1, r.comm, r.stream));
    if (r.rank == 1) check(ncclRecv(values, 4, ncclFloat32, 0, r.comm, r.stream));
    r.wait();
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("ncclRecv of 4 float32 by rank 1"),
                                 HasSubstr("ncclSend of 8 float32 by rank 0"))));
}

TEST(SimtNcclFaults, MemoryAndStreamsThatAreNotItsDevices) {
  run_ranks(1, [](Rank& r) {
    const auto fault = [&](float* values, std::size_t count, cudaStream_t stream) -> std::string {
      try {
        ncclAllReduce(values, values, count, ncclFloat32, ncclSum, r.comm, stream);
      } catch (const simt::Fault& error) {
        return error.what();
      }
      return "";
    };
    float on_host = 0;
    float* const values = r.array<float>(4);
    EXPECT_THAT(fault(&on_host, 1, r.stream), HasSubstr("not of a device"));
    EXPECT_THAT(fault(values + 1, 4, r.stream), HasSubstr("from byte 4 of an allocation of 16"));
    cudaSetDevice(1);
    float* const of_another = r.array<float>(4);
    cudaStream_t another = nullptr;
    cudaStreamCreateWithPriority(&another, 0, 0);
    EXPECT_THAT(fault(of_another, 4, r.stream), HasSubstr("of device 1, not of its device 0"));
    EXPECT_THAT(fault(values, 4, another), HasSubstr("a stream of device 1, and its device is 0"));
    EXPECT_EQ(fault(values, 4, r.stream), "");  // whatever the thread's device is
    cudaStreamDestroy(another);
    cudaSetDevice(0);
  });
}

TEST(SimtNcclFaults, BuffersThatOverlap) {
  run_ranks(1, [](Rank& r) {
    float* const values = r.array<float>(8);
    EXPECT_THROW(ncclAllReduce(values, values + 1, 4, ncclFloat32, ncclSum, r.comm, r.stream),
                 simt::Fault);
    EXPECT_THROW(ncclAllGather(values + 1, values, 4, ncclFloat32, r.comm, r.stream), simt::Fault);
    EXPECT_EQ(ncclAllGather(values + 4, values, 4, ncclFloat32, r.comm, r.stream), ncclSuccess);
  });
}

TEST(SimtNcclFaults, WrongArguments) {
  run_ranks(1, [](Rank& r) {
    float* const values = r.array<float>(8);
    EXPECT_EQ(ncclSend(values, 4, ncclFloat32, 1, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, nullptr, r.stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    check(ncclGroupStart());
    EXPECT_EQ(ncclSend(values, 4, ncclFloat32, -1, r.comm, r.stream), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, {}, 0, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, new_id(), 1, nullptr), ncclInvalidArgument);
    ncclConfig_t config{};
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config), ncclInvalidArgument);
  });
}

// -------------------------------------------------------------------------------------------
// aborts

TEST(SimtNcclFaults, AbortEndsAnOperationThatAThreadWaitsFor) {
  const ncclUniqueId id = new_id();
  std::promise<void> has_aborted;
  EXPECT_THAT(errors_of_threads(
                  2,
                  [&](int number) {
                    Rank r(id, number, 2, number);
                    if (number == 1) return has_aborted.get_future().wait();  // does nothing
                    float* const values = r.array(std::vector<float>(4, 1.0F));
                    check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
                    bool has_run = false;
                    simt::enqueue(r.stream, [&] { has_run = true; });
                    std::thread watchdog([&] {
                      for (int i = 0; i < 100; ++i) {
                        EXPECT_EQ(cudaStreamQuery(r.stream), cudaErrorNotReady);
                      }
                      EXPECT_EQ(ncclCommAbort(r.comm), ncclSuccess);
                    });
                    r.wait();
                    watchdog.join();
                    EXPECT_TRUE(has_run);
                    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[3]));
                    EXPECT_EQ(
                        ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream),
                        ncclInvalidArgument);
                    ncclResult_t status = ncclSuccess;
                    EXPECT_EQ(ncclCommGetAsyncError(r.comm, &status), ncclInvalidArgument);
                    r.comm = nullptr;
                    has_aborted.set_value();
                  }),
              Each(""));
}

// ------------------------------------------------------------------------------------------
// programs

/// Runs a rank in a program of its own.
class Program {
 public:
  explicit Program(const std::function<void()>& run) : process_(::fork()) {
    if (process_ != 0) return;
    int status = 0;
    try {
      run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    ::_exit(testing::Test::HasFailure() ? 2 : status);
  }
  /// Its exit status.
  int wait() const {
    int status = -1;
    ::waitpid(process_, &status, 0);
    return status;
  }

 private:
  pid_t process_;
};

TEST(SimtNcclPrograms, RanksCanBePrograms) {
  const ncclUniqueId id = new_id();
  const auto run = [&](int number) {
    Rank r(id, number, 3, number);
    float* const values = r.array(std::vector<float>(4, 1.0F));
    check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
    r.wait();
    EXPECT_EQ(values[3], 3.0F);
    check(ncclCommFinalize(r.comm));
  };
  const Program first([&] { run(0); }), second([&] { run(1); });
  run(2);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST(SimtNcclPrograms, ARankDoesItsPartWhileItsProgramWaitsForAnother) {
  const ncclUniqueId id = new_id();
  const Program other([&] {
    Rank r(id, 1, 2, 1);
    float* const values = r.array(std::vector<float>(4, 1.0F));
    check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
    r.wait();
    EXPECT_EQ(values[0], 6.0F);
  });
  Rank r(id, 0, 2, 0);
  float* const values = r.array(std::vector<float>(4, 1.0F));
  simt::enqueue(r.stream, [=] { values[0] = 5.0F; });
  check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
  EXPECT_EQ(other.wait(), 0);
  r.wait();
}

TEST(SimtNcclPrograms, BothAreToldOfASendThatDiffersFromItsReceive) {
  const ncclUniqueId id = new_id();
  const auto run = [&](int number) {
    Rank r(id, number, 2, number);
    float* const values = r.array(std::vector<float>(8));
    try {
      if (number == 0) check(ncclSend(values, 8, ncclFloat32, 1, r.comm, r.stream));
      if (number == 1) check(ncclRecv(values, 4, ncclFloat32, 0, r.comm, r.stream));
      r.wait();
      ADD_FAILURE() << "rank " << number << " was not told";
    } catch (const simt::Fault& fault) {
      EXPECT_THAT(fault.what(), AllOf(HasSubstr("ncclRecv of 4 float32 by rank 1"),
                                      HasSubstr("ncclSend of 8 float32 by rank 0")));
    }
  };
  const Program other([&] { run(1); });
  run(0);
  EXPECT_EQ(other.wait(), 0);
}

TEST(SimtNcclPrograms, DevicesOfProgramsAreNumbered) {
  const ncclUniqueId id = new_id();
  const auto run = [&](const char* device_id, int number, int device) {
    ::setenv("SIMT_DEVICE_ID", device_id, 1);
    try {
      Rank r(id, number, 2, device);
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("both on CUDA device 3"));
      return;
    }
    FAIL() << "took the same device twice";
  };
  const Program other([&] { run("3", 1, 0); });
  run("2", 0, 1);
  ::unsetenv("SIMT_DEVICE_ID");
  EXPECT_EQ(other.wait(), 0);
}

/// A rank whose peer has gone without a word.
void with_widow(const std::function<void(Rank&, float* values)>& check_rank) {
  const ncclUniqueId id = new_id();
  const Program other([&] {
    Rank r(id, 1, 2, 1);
    float* const value = r.array<float>(1);
    check(ncclRecv(value, 1, ncclFloat32, 0, r.comm, r.stream));
    r.wait();
    ::_exit(0);
  });
  Rank r(id, 0, 2, 0);
  float* const values = r.array(std::vector<float>(4, 1.0F));
  check(ncclSend(values, 1, ncclFloat32, 1, r.comm, r.stream));
  check(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream));
  for (int i = 0; i < 20; ++i) cudaStreamQuery(r.stream);  // it sends
  EXPECT_EQ(other.wait(), 0);
  check_rank(r, values);
  check(ncclCommAbort(std::exchange(r.comm, nullptr)));
  r.wait();
  EXPECT_TRUE(std::isnan(values[0]));
}

TEST(SimtNcclPrograms, ARankThatIsGoneIsWaitedForForEver) {
  with_widow([](Rank& r, float*) {
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(cudaStreamQuery(r.stream), cudaErrorNotReady);
    EXPECT_EQ(r.status(), ncclSuccess);
  });
}

TEST(SimtNcclPrograms, ARankThatIsGoneCanBeAnError) {
  ::setenv("SIMT_NCCL_DEATH", "error", 1);
  with_widow([](Rank& r, float* values) {
    EXPECT_TRUE(nccl_ranks::wait_for([&] { return r.status() == ncclRemoteError; }));
    EXPECT_EQ(cudaStreamQuery(r.stream), cudaErrorNotReady);
    EXPECT_EQ(ncclAllReduce(values, values, 4, ncclFloat32, ncclSum, r.comm, r.stream),
              ncclRemoteError);
    EXPECT_STREQ(ncclGetLastError(r.comm), "rank 1 is gone");
  });
  ::unsetenv("SIMT_NCCL_DEATH");
}

}  // namespace
