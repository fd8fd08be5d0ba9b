// Kernels of a few lines: memory, control and collectives, and every fault by name.
#include "tests/support/ptx/machine.h"

#include <array>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/ptx/evaluate.h"
#include "tests/support/ptx/parser.h"

namespace ptx {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* kBegin = R"(
.visible .entry kernel(
	.param .u64 out
)
{
	.reg .pred 	%p<9>;
	ld.param.u64 	%out, [out];
	mov.u32 	%tid, %tid.x;
	mov.u32 	%block, %ctaid.x;
	mov.u32 	%size, %ntid.x;
	mad.lo.u32 	%i, %block, %size, %tid;
	mul.wide.u32 	%offset, %i, 4;
	add.u64 	%mine, %out, %offset;
)";

/// Device memory of `count` numbers.
class Numbers {
 public:
  explicit Numbers(std::size_t count) : values_(count) {
    static_cast<void>(cudaMalloc(&memory_, count * sizeof(std::uint32_t)));
  }
  ~Numbers() { static_cast<void>(cudaFree(memory_)); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  /// The numbers after a launch of `body` with 32 lanes per block unless told.
  std::vector<std::uint32_t> run(const std::string& body,
                                 unsigned blocks = 1,
                                 unsigned threads = 32,
                                 std::uint64_t seed = 0) {
    Module module;
    std::istringstream text(kBegin + body + "\n\tret;\n}\n");
    parse(text, "test.ptx", module);
    Arguments arguments(1, std::vector<std::byte>(sizeof(memory_)));
    std::memcpy(arguments[0].data(), static_cast<const void*>(&memory_), sizeof(memory_));
    executed_ = ptx::run(module.kernels.at("kernel"), module.shared_arrays, blocks, threads,
                         arguments, seed);
    std::memcpy(values_.data(), memory_, values_.size() * sizeof(std::uint32_t));
    return values_;
  }
  const Executed& executed() const { return executed_; }

 private:
  void* memory_ = nullptr;
  std::vector<std::uint32_t> values_;
  Executed executed_;
};

template <class Check>
void for_schedules(Check check) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    check(seed);
  }
}

void expect_fault(const std::string& body, const std::string& what, unsigned threads = 32) {
  Numbers numbers(64);
  for_schedules([&](std::uint64_t seed) {
    EXPECT_THAT([&] { numbers.run(body, 1, threads, seed); },
                ThrowsMessage<simt::Fault>(HasSubstr(what)));
  });
}

TEST(Machine, EveryLaneOfEveryBlockRunsOnce) {
  for_schedules([](std::uint64_t seed) {
    Numbers numbers(5 * 64);
    const auto values = numbers.run("st.global.u32 [%mine], %i;", 5, 64, seed);
    for (std::uint32_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i);
  });
}

TEST(Machine, LanesTakeBranchesAndComeBack) {
  for_schedules([](std::uint64_t seed) {
    Numbers numbers(32);
    const auto values = numbers.run(R"(
	mov.u32 %n, 0;
	mov.u32 %sum, 0;
loop:
	add.u32 %sum, %sum, %n;
	add.u32 %n, %n, 1;
	setp.le.u32 %p1, %n, %tid;
	@%p1 bra loop;
	setp.gt.u32 %p2, %tid, 30;
	@!%p2 st.global.u32 [%mine], %sum;
	@%p2 st.global.u32 [%mine+0], 7;)",
                                    1, 32, seed);
    for (std::uint32_t i = 0; i < 31; ++i) ASSERT_EQ(values[i], i * (i + 1) / 2);
    EXPECT_EQ(values[31], 7U);
  });
}

TEST(Machine, VectorsAndHalvesOfRegisters) {
  Numbers numbers(8);
  const auto values = numbers.run(R"(
	setp.ne.u32 %p1, %tid, 0;
	@%p1 ret;
	mov.b64 %wide, {%size, %tid};
	mov.b64 {%low, %high}, 0x500000006;
	st.global.v4.u32 [%out], {1, 2, 3, 4};
	ld.global.v2.u32 {%a, %b}, [%out+8];
	st.global.v2.u32 [%out+16], {%b, %a};
	st.global.u64 [%out+24], %wide;
	st.global.u32 [%out], %low;
	st.global.u32 [%out+4], %high;)");
  EXPECT_THAT(values, ElementsAre(6, 5, 3, 4, 4, 3, 32, 0));
}

TEST(Machine, SignsOfLoadedBytesAreExtended) {
  Numbers numbers(32);
  EXPECT_THAT(numbers.run(R"(
	st.global.u32 [%mine], 0x80;
	ld.global.s8 %x, [%mine];
	st.global.u32 [%mine], %x;)"),
              Each(0xFFFFFF80U));
}

/// Every lane writes its number to shared memory and, after `barrier`, reads its neighbour's.
std::string exchange_through_shared_memory(const std::string& barrier) {
  return R"(
	.shared .align 16 .b8 numbers[128];
	mov.u32 %at, numbers;
	shl.b32 %bytes, %tid, 2;
	add.u32 %at, %at, %bytes;
	st.shared.u32 [%at], %i;
)" + barrier +
         R"(
	xor.b32 %other, %at, 4;
	ld.shared.u32 %x, [%other];
	st.global.u32 [%mine], %x;)";
}

TEST(Machine, SharedMemoryBelongsToTheBlock) {
  for_schedules([&](std::uint64_t seed) {
    Numbers numbers(96);
    const auto values =
        numbers.run(exchange_through_shared_memory("bar.warp.sync -1;"), 3, 32, seed);
    for (std::uint32_t i = 0; i < 96; ++i) ASSERT_EQ(values[i], i ^ 1U);
  });
}

TEST(Machine, WithoutABarrierSomeScheduleReadsTooEarly) {
  bool differs = false;
  for_schedules([&](std::uint64_t seed) {
    Numbers numbers(32);
    const auto values = numbers.run(exchange_through_shared_memory(""), 1, 32, seed);
    for (std::uint32_t i = 0; i < 32; ++i) differs |= values[i] != (i ^ 1U);
  });
  EXPECT_TRUE(differs);
}

TEST(Machine, ShufflesWithinSegments) {
  // c of width 8 is 0x181F: segments of 8 lanes.
  for_schedules([](std::uint64_t seed) {
    Numbers numbers(32);
    const auto values = numbers.run(R"(
	shfl.sync.idx.b32 %x|%p1, %tid, 3, 0x181F, -1;
	selp.u32 %x, %x, 99, %p1;
	st.global.u32 [%mine], %x;)",
                                    1, 32, seed);
    for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(values[i], i / 8 * 8 + 3);
  });
}

TEST(Machine, ShufflesUpWithinSegments) {
  // c of width 8 is 0x1800.
  for_schedules([](std::uint64_t seed) {
    Numbers numbers(32);
    const auto values = numbers.run(R"(
	shfl.sync.up.b32 %x|%p1, %tid, 2, 0x1800, -1;
	selp.u32 %any, 100, 0, %p1;
	add.u32 %x, %x, %any;
	st.global.u32 [%mine], %x;)",
                                    1, 32, seed);
    for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(values[i], i % 8 < 2 ? i : i - 2 + 100);
  });
}

TEST(Machine, ShufflesAcrossTheWarpAndVotesAndReduces) {
  for_schedules([](std::uint64_t seed) {
    Numbers numbers(32);
    const auto values = numbers.run(R"(
	xor.b32 %other, %tid, 31;
	shfl.sync.idx.b32 %x|%p1, %tid, %other, 0x1F, 0xFFFFFFFF;
	setp.lt.u32 %p2, %tid, 4;
	vote.sync.ballot.b32 %votes, %p2, 0xFFFFFFFF;
	vote.sync.any.pred %p3, %p2, 0xFFFFFFFF;
	selp.u32 %any, 256, 0, %p3;
	add.u32 %least, %x, 100;
	redux.sync.min.u32 %least, %least, 0xFFFFFFFF;
	redux.sync.max.u32 %other, %other, 0xFFFFFFFF;
	add.u32 %x, %x, %other;
	add.u32 %x, %x, %votes;
	add.u32 %x, %x, %any;
	add.u32 %x, %x, %least;
	st.global.u32 [%mine], %x;)",
                                    1, 32, seed);
    for (std::uint32_t i = 0; i < 32; ++i) ASSERT_EQ(values[i], (i ^ 31U) + 31 + 15 + 256 + 100);
  });
}

TEST(Machine, CountsWarpInstructionsInLockStep) {
  Numbers numbers(64);
  numbers.run("st.global.u32 [%mine], %i;", 1, 64);
  EXPECT_EQ(numbers.executed().warp_instructions, 2 * 9);
  EXPECT_EQ(numbers.executed().lane_instructions, 64 * 9);
}

TEST(Faults, AddressesOutsideOfAllocations) {
  expect_fault("st.global.u32 [%out+256], 1;", "`st.global.u32 [%out+256], 1;`: outside of every");
  expect_fault("ld.global.u32 %x, [%out+-4];", "outside of every allocation");
  expect_fault("ld.global.u32 %x, [12];", "outside of every allocation");
  expect_fault("ld.global.u32 %x, [-4];", "outside of every allocation");
  expect_fault("ld.param.u64 %x, [out+-8];", "outside of the parameters");
  expect_fault("ld.global.v4.u32 {%a, %b, %c, %d}, [%out+248];", "misaligned address");
  expect_fault("ld.param.u64 %x, [out+8];", "outside of the parameters");
}

TEST(Faults, SharedArraysLieOnlyAsTheyAreDeclared) {
  const std::string array = ".shared .align 4 .b8 numbers[64];\nmov.u32 %at, numbers;\n";
  expect_fault(array + "st.shared.v4.u32 [%at], {1, 2, 3, 4};", "misaligned address");
  expect_fault(array + "st.shared.u32 [%at+64], 1;", "outside of every shared array");
  expect_fault(array + "st.shared.u32 [%at+-4], 1;", "outside of every shared array");
  expect_fault(array + "st.shared.u32 [-4], 1;", "outside of every shared array");
  const std::string two = array + ".shared .align 4 .b8 more[64];\n";
  expect_fault(two + "st.shared.u32 [%at+64], 1;", "outside of every shared array");
}

TEST(Faults, RacesBetweenWarps) {
  expect_fault("st.global.u32 [%out], 1;", "race: another warp writes", 64);
  expect_fault("ld.global.u32 %x, [%out];\nsetp.eq.u32 %p1, %i, 40;\n@%p1 st.global.u32 [%out], 1;",
               "race", 64);
  expect_fault(".shared .align 4 .b8 array[4];\nmov.u32 %at, array;\nst.shared.u32 [%at], 1;",
               "race: another warp writes", 64);
  Numbers numbers(64);  // reading together is no race
  EXPECT_NO_THROW(numbers.run("ld.global.u32 %x, [%out];", 2, 64));
}

TEST(Faults, CollectivesWhoseLanesDisagree) {
  expect_fault("bar.warp.sync 0xFFFFFFFE;", "the mask leaves out its caller");
  expect_fault(
      "and.b32 %m, %tid, 1;\nshl.b32 %m, %m, 31;\nor.b32 %m, %m, 0x7FFFFFFF;\nbar.warp.sync %m;",
      "waits with another mask");
  expect_fault("setp.eq.u32 %p1, %tid, 5;\n@%p1 ret;\nbar.warp.sync -1;",
               "lane 5, which has ended");
  expect_fault(
      "setp.eq.u32 %p1, %tid, 5;\n@%p1 bra other;\nbar.warp.sync -1;\nret;\nother:\nbar.warp.sync "
      "-1;",
      "waits at another instruction");
  expect_fault(
      "shfl.sync.idx.b32 %x|%p1, %tid, 20, 0x1F, 0xFFFFFFFF;\n"
      "setp.lt.u32 %p2, %tid, 16;\n@!%p2 bra upper;\n"
      "shfl.sync.idx.b32 %x|%p1, %tid, 20, 0x1F, 0xFFFF;\nupper:",
      "reads lane 20, which its mask leaves out");
}

TEST(Faults, ArgumentsOfTheWrongSize) {
  Module module;
  std::istringstream text(std::string(kBegin) + "ret;\n}\n");
  parse(text, "test.ptx", module);
  const Kernel& kernel = module.kernels.at("kernel");
  EXPECT_THAT([&] { run(kernel, {}, 1, 32, {std::vector<std::byte>(4)}, 0); },
              ThrowsMessage<simt::Fault>(HasSubstr("has 4 bytes, and the PTX says 8")));
  EXPECT_THAT([&] { run(kernel, {}, 1, 32, {}, 0); },
              ThrowsMessage<simt::Fault>(HasSubstr("wrong number of parameters")));
  EXPECT_THAT([&] { run(kernel, {}, 1, 31, {std::vector<std::byte>(8)}, 0); },
              ThrowsMessage<simt::Fault>(HasSubstr("31 threads")));
}

TEST(Names, OfAnonymousNamespacesAreTheSame) {
  EXPECT_EQ(canonical_name("_ZN6satrap7backend39_GLOBAL__N__188ec347_7_plan_cu_a4883ecc4stepEv"),
            canonical_name("_ZN6satrap7backend12_GLOBAL__N_14stepEv"));
  EXPECT_EQ(canonical_name("_ZN6satrap7backend4stepEv"), "_ZN6satrap7backend4stepEv");
}

TEST(Parse, RefusesWhatItDoesNotModel) {
  for (const char* line :
       {"call.uni (%x), sqrtf, (%y);", ".local .align 4 .b8 stack[16];", "setp.lo.u32 %p1, %i, 1;",
        "setp.lt.s32 %p1|%p2, %i, 1;", "mov.b64 %x, {%a, %b, %c, %d};", "mov.u32 %x, %laneid;",
        "mov.u32 %x, %tid.y;", "shfl.sync.idx.b32 %x, %i, 3, 31, -1;", "mov.u32 %x, 0xZ;",
        "bar.sync 0;", "brx.idx %x, table;", "mov.u32 %x, unknown;", "bra nowhere;",
        "add.s32 %x, %y"}) {
    SCOPED_TRACE(line);
    Module module;
    std::istringstream text(std::string(kBegin) + line + "\nret;\n}\n");
    EXPECT_THROW(parse(text, "test.ptx", module), simt::Fault);
  }
  Module module;
  std::istringstream text(kBegin);
  EXPECT_THAT([&] { parse(text, "test.ptx", module); },
              ThrowsMessage<simt::Fault>(HasSubstr("the file ends within kernel")));
}

}  // namespace
}  // namespace ptx
