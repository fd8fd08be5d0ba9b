#include "tests/support/simt/races.h"

#include <array>
#include <functional>
#include <string>

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simt/races_kernels.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;

using race_kernels::count_up;
using race_kernels::load;
using race_kernels::store;
using race_kernels::store_bytes;
using race_kernels::store_shared;

constexpr int kCount = 64;

template <class... Parameters>
void launch(cudaStream_t stream,
            void (*kernel)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  cudaLaunchConfig_t config{};
  config.blockDim = 32;
  config.stream = stream;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Streams and memory of one run of a test.
struct Bench {
  std::array<cudaStream_t, 3> streams{};
  cudaEvent_t event = nullptr, second_event = nullptr;
  float *values = nullptr, *others = nullptr, *sums = nullptr, *more_sums = nullptr;
  float* pinned = nullptr;

  Bench() {
    for (cudaStream_t& stream : streams) cudaStreamCreateWithPriority(&stream, 0, 0);
    cudaEventCreateWithFlags(&event, 0);
    cudaEventCreateWithFlags(&second_event, 0);
    for (float** array : {&values, &others, &sums, &more_sums}) {
      cudaMalloc(reinterpret_cast<void**>(array), kBytes);
    }
    cudaHostAlloc(reinterpret_cast<void**>(&pinned), kBytes, 0);
  }
  ~Bench() {
    for (const cudaEvent_t e : {event, second_event}) cudaEventDestroy(e);
    for (float* const array : {values, others, sums, more_sums}) cudaFree(array);
    cudaFreeHost(pinned);
    for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void copy(void* to, const void* from, cudaStream_t stream) {
    cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDefault, stream);
  }

  static constexpr std::size_t kBytes = kCount * sizeof(float);
};

class SimtRaces : public testing::Test {
 protected:
  void SetUp() override {
    if (!race_kernels::kernels_tell())
      GTEST_SKIP() << "kernels of this build do not tell what they touch";
  }
};

/// What is reported, under this seed; empty if nothing is.
std::string report_of(const std::function<void(Bench&)>& queue_work, std::uint64_t seed) {
  simt::set_seed(seed);
  std::string report;
  {
    Bench bench;
    try {
      queue_work(bench);
      cudaDeviceSynchronize();
    } catch (const simt::Fault& fault) {
      report = fault.what();
    }
  }
  simt::set_seed(0);
  return report;
}

constexpr std::uint64_t kSeeds = 16;

void expect_race(const std::string& one,
                 const std::string& other,
                 const std::function<void(Bench&)>& queue_work) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_THAT(report_of(queue_work, seed),
                AllOf(HasSubstr("race between streams"), HasSubstr(one), HasSubstr(other)))
        << "seed " << seed;
  }
}

void expect_none(const std::function<void(Bench&)>& queue_work) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(report_of(queue_work, seed), "") << "seed " << seed;
  }
}

// ------------------------------------------------------------------------------ what is a race

TEST_F(SimtRaces, TwoWritesWithoutAnOrder) {
  expect_race("store on stream", "count_up on stream", [](Bench& b) {
    launch(b.streams[0], store, b.values, kCount);
    launch(b.streams[1], count_up, reinterpret_cast<unsigned*>(b.values));
  });
}

TEST_F(SimtRaces, AReadBesideAWrite) {
  expect_race("load", "store", [](Bench& b) {
    launch(b.streams[0], load, b.values, kCount, b.sums);
    launch(b.streams[1], store, b.values, kCount);
  });
}

TEST_F(SimtRaces, TheReportNamesBothStreamsAndTheByte) {
  EXPECT_THAT(
      report_of(
          [](Bench& b) {
            launch(b.streams[0], store, b.values, 4);
            launch(b.streams[1], store, b.values + 3, 4);
          },
          0),
      testing::MatchesRegex("race between streams: store on stream [0-9]+ writes what store on "
                            "stream [0-9]+ writes, without an order: byte 12 of the 256 of device "
                            "allocation [0-9]+"));
}

TEST_F(SimtRaces, AtomicsAreWrites) {
  expect_race("count_up", "count_up", [](Bench& b) {
    launch(b.streams[0], count_up, reinterpret_cast<unsigned*>(b.values));
    launch(b.streams[1], count_up, reinterpret_cast<unsigned*>(b.values));
  });
}

TEST_F(SimtRaces, EveryReaderCounts) {
  expect_race("load", "store", [](Bench& b) {
    launch(b.streams[0], load, b.values, kCount, b.sums);
    launch(b.streams[1], load, b.values, kCount, b.more_sums);
    cudaEventRecord(b.event, b.streams[1]);
    cudaStreamWaitEvent(b.streams[2], b.event);
    launch(b.streams[2], store, b.values, kCount);
  });
}

TEST_F(SimtRaces, ACopyBesideAKernel) {
  expect_race("a copy of 256 bytes on stream", "load", [](Bench& b) {
    launch(b.streams[0], load, b.values, kCount, b.sums);
    b.copy(b.values, b.pinned, b.streams[1]);
  });
}

TEST_F(SimtRaces, DeclaredReadsBesideAKernel) {
  expect_race("checksum", "store", [](Bench& b) {
    const simt::Bytes bytes(reinterpret_cast<const std::byte*>(b.values), Bench::kBytes);
    simt::enqueue(b.streams[0], {.run = [] {}, .name = "checksum", .reads = {bytes}});
    launch(b.streams[1], store, b.values, kCount);
  });
}

TEST(SimtRacesOfCopies, AFillBesideACopy) {
  expect_race("a fill of 256 bytes", "a copy of 256 bytes", [](Bench& b) {
    cudaMemsetAsync(b.values, 0, Bench::kBytes, b.streams[0]);
    b.copy(b.pinned, b.values, b.streams[1]);
  });
}

TEST(SimtRacesOfCopies, PinnedMemoryIsWatched) {
  expect_race("a copy of 256 bytes", "pinned", [](Bench& b) {
    b.copy(b.pinned, b.values, b.streams[0]);
    b.copy(b.others, b.pinned, b.streams[1]);
  });
}

TEST(SimtRacesOfCopies, TheHostMustNotWriteWhatWillBeCopied) {
  EXPECT_EQ(report_of(
                [](Bench& b) {
                  b.pinned[0] = 1.0F;
                  b.copy(b.values, b.pinned, b.streams[0]);
                  b.pinned[0] = 2.0F;
                },
                0),
            "race: the host writes what a copy of 256 bytes reads, before it has run");
}

TEST(SimtRacesOfCopies, QueuedWorkMayWriteWhatWillBeCopied) {
  expect_none([](Bench& b) {
    cudaMemsetAsync(b.values, 1, Bench::kBytes, b.streams[0]);
    b.copy(b.pinned, b.values, b.streams[0]);
    b.copy(b.others, b.pinned, b.streams[0]);
  });
}

TEST(SimtRacesOfCopies, DeclaredWritesBesideAFill) {
  expect_race("host function", "a fill of 256 bytes", [](Bench& b) {
    const simt::Bytes bytes(reinterpret_cast<const std::byte*>(b.values), Bench::kBytes);
    cudaMemsetAsync(b.values, 0, Bench::kBytes, b.streams[0]);
    simt::enqueue(b.streams[1], {.run = [] {}, .name = "host function", .writes = {bytes}});
  });
}

TEST(SimtRacesOfCopies, AStreamThatEndsLeavesItsWorkUnordered) {
  expect_race("a fill of 256 bytes", "a fill of 256 bytes", [](Bench& b) {
    cudaMemsetAsync(b.values, 0, Bench::kBytes, b.streams[0]);
    cudaStreamDestroy(b.streams[0]);
    cudaStreamCreateWithPriority(&b.streams[0], 0, 0);
    cudaMemsetAsync(b.values, 0, Bench::kBytes, b.streams[0]);
  });
}

// ------------------------------------------------------------------------------ what is none

TEST_F(SimtRaces, ReadsAreNone) {
  expect_none([](Bench& b) {
    launch(b.streams[0], load, b.values, kCount, b.sums);
    launch(b.streams[1], load, b.values, kCount, b.more_sums);
  });
}

TEST_F(SimtRaces, HalvesOfAnArrayAreNone) {
  expect_none([](Bench& b) {
    launch(b.streams[0], store, b.values, kCount / 2);
    launch(b.streams[1], store, b.values + kCount / 2, kCount / 2);
  });
}

TEST_F(SimtRaces, NeighbouringBytesAreNone) {
  expect_none([](Bench& b) {
    auto* const bytes = reinterpret_cast<unsigned char*>(b.values);
    launch(b.streams[0], store_bytes, bytes, 1);
    launch(b.streams[1], store_bytes, bytes + 1, 1);
  });
}

TEST_F(SimtRaces, AStreamIsInOrder) {
  expect_none([](Bench& b) {
    launch(b.streams[0], store, b.values, kCount);
    launch(b.streams[0], load, b.values, kCount, b.sums);
    b.copy(b.pinned, b.sums, b.streams[0]);
    launch(b.streams[0], store, b.values, kCount);
  });
}

TEST_F(SimtRaces, SharedMemoryIsNotTheDevices) {
  expect_none([](Bench& b) {
    launch(b.streams[0], store_shared, b.values);
    launch(b.streams[1], store_shared, b.others);
  });
}

TEST_F(SimtRaces, MemoryThatIsFreedAndAllocatedAgainIsNew) {
  expect_none([](Bench& b) {
    for (const cudaStream_t stream : b.streams) {
      void* memory = nullptr;
      cudaMalloc(&memory, 1 << 16);
      launch(stream, store, static_cast<float*>(memory), kCount);
      cudaFree(memory);
    }
  });
}

// ------------------------------------------------------------------------------ what orders

TEST_F(SimtRaces, AnEventOrders) {
  expect_none([](Bench& b) {
    launch(b.streams[0], store, b.values, kCount);
    cudaEventRecord(b.event, b.streams[0]);
    cudaStreamWaitEvent(b.streams[1], b.event);
    launch(b.streams[1], load, b.values, kCount, b.sums);
  });
}

TEST_F(SimtRaces, AnEventThatIsRecordedBeforeTheWorkDoesNot) {
  expect_race("store", "load", [](Bench& b) {
    cudaEventRecord(b.event, b.streams[0]);
    launch(b.streams[0], store, b.values, kCount);
    cudaStreamWaitEvent(b.streams[1], b.event);
    launch(b.streams[1], load, b.values, kCount, b.sums);
  });
}

TEST_F(SimtRaces, AWaitIsForTheLastRecordBeforeIt) {
  expect_race("store", "load", [](Bench& b) {
    cudaEventRecord(b.event, b.streams[0]);
    cudaStreamWaitEvent(b.streams[1], b.event);
    launch(b.streams[0], store, b.values, kCount);
    cudaEventRecord(b.event, b.streams[0]);
    launch(b.streams[1], load, b.values, kCount, b.sums);
  });
}

TEST_F(SimtRaces, OrdersFollowFromEachOther) {
  expect_none([](Bench& b) {
    launch(b.streams[0], store, b.values, kCount);
    cudaEventRecord(b.event, b.streams[0]);
    cudaStreamWaitEvent(b.streams[1], b.event);
    cudaEventRecord(b.second_event, b.streams[1]);
    cudaStreamWaitEvent(b.streams[2], b.second_event);
    launch(b.streams[2], store, b.values, kCount);
  });
}

TEST_F(SimtRaces, WaitsForAllReadersOrder) {
  expect_none([](Bench& b) {
    launch(b.streams[0], load, b.values, kCount, b.sums);
    cudaEventRecord(b.event, b.streams[0]);
    launch(b.streams[1], load, b.values, kCount, b.more_sums);
    cudaEventRecord(b.second_event, b.streams[1]);
    for (const cudaEvent_t event : {b.event, b.second_event}) {
      cudaStreamWaitEvent(b.streams[2], event);
    }
    launch(b.streams[2], store, b.values, kCount);
  });
}

TEST_F(SimtRaces, WaitsOfTheHostOrder) {
  const std::function<void(Bench&)> waits[] = {
      [](Bench& b) { cudaStreamSynchronize(b.streams[0]); },
      [](Bench& b) { cudaEventSynchronize(b.event); },
      [](Bench&) { cudaDeviceSynchronize(); },
      [](Bench& b) {
        while (cudaEventQuery(b.event) != cudaSuccess) cudaGetLastError();
      },
      [](Bench& b) {
        while (cudaStreamQuery(b.streams[0]) != cudaSuccess) cudaGetLastError();
      },
      [](Bench& b) { cudaFree(std::exchange(b.others, nullptr)); },
  };
  for (const auto& wait : waits) {
    SCOPED_TRACE(&wait - waits);
    expect_none([&](Bench& b) {
      launch(b.streams[0], store, b.values, kCount);
      cudaEventRecord(b.event, b.streams[0]);
      wait(b);
      launch(b.streams[1], load, b.values, kCount, b.sums);
    });
  }
}

TEST_F(SimtRaces, WorkThatTellsTheHostOrders) {
  expect_none([](Bench& b) {
    bool is_told = false;
    launch(b.streams[0], store, b.values, kCount);
    simt::enqueue(b.streams[0], {.run = [&] { is_told = true; }, .tells_host = true});
    while (!is_told) cudaStreamQuery(b.streams[2]);
    launch(b.streams[1], load, b.values, kCount, b.sums);
  });
}

TEST_F(SimtRaces, AWaitOfTheHostForAnotherStreamDoesNot) {
  expect_race("store", "load", [](Bench& b) {
    launch(b.streams[0], store, b.values, kCount);
    cudaStreamSynchronize(b.streams[2]);
    launch(b.streams[1], load, b.values, kCount, b.sums);
  });
}

TEST_F(SimtRaces, AStreamThatHasEndedAndWasWaitedForIsInOrder) {
  expect_none([](Bench& b) {
    launch(b.streams[0], store, b.values, kCount);
    cudaStreamDestroy(b.streams[0]);
    cudaDeviceSynchronize();
    cudaStreamCreateWithPriority(&b.streams[0], 0, 0);
    launch(b.streams[0], load, b.values, kCount, b.sums);
  });
}

}  // namespace
