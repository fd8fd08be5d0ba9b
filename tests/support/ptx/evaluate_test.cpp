// Every opcode that computes, against the manual's definition.
#include "tests/support/ptx/evaluate.h"

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/ptx/parser.h"
#include "tests/support/simt/executor.h"

namespace ptx {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Bits = std::uint64_t;

Instruction instruction(const std::string& opcode, std::size_t num_sources) {
  std::string text = ".visible .entry k(\n)\n{\n" + opcode + " %d";
  for (std::size_t s = 0; s < num_sources; ++s) text += ", %s" + std::to_string(s);
  std::istringstream stream(text + ";\nret;\n}\n");
  Module module;
  parse(stream, "one.ptx", module);
  return module.kernels.at("k").code.at(0);
}

Bits result(const std::string& opcode, const std::vector<Bits>& sources) {
  return evaluate(instruction(opcode, sources.size()), sources);
}

Bits f(float x) { return std::bit_cast<std::uint32_t>(x); }
Bits s64(std::int64_t x) { return static_cast<Bits>(x); }  // also of narrower signed types

constexpr Bits kNan = 0x7FFFFFFF;
constexpr Bits kAll = ~Bits{0};
const float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  const char* opcode;
  std::vector<Bits> sources;
  Bits expected;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.opcode;
  for (const Bits s : c.sources) *out << " 0x" << std::hex << s;
}

class Evaluate : public testing::TestWithParam<Case> {};

TEST_P(Evaluate, IsTheManualsValue) {
  EXPECT_EQ(result(GetParam().opcode, GetParam().sources), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Integers,
    Evaluate,
    testing::Values(Case{"add.u32", {0xFFFFFFFF, 2}, 1},
                    Case{"add.s32", {s64(0x7FFFFFFF), 1}, s64(-0x80000000LL)},
                    Case{"add.s64", {s64(-5), 3}, s64(-2)},
                    Case{"add.s16", {s64(0x7FFF), 1}, s64(-0x8000)},
                    Case{"sub.u32", {1, 2}, 0xFFFFFFFF},
                    Case{"sub.s64", {1, 2}, kAll},
                    Case{"mul.lo.s32", {0x10000, 0x10000}, 0},
                    Case{"mul.lo.s64", {s64(-3), 5}, s64(-15)},
                    Case{"mul.hi.u32", {0x80000000, 6}, 3},
                    Case{"mul.hi.s32", {s64(-1), 6}, kAll},
                    Case{"mul.hi.u64", {Bits{1} << 63, 6}, 3},
                    Case{"mul.wide.u32", {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE00000001},
                    Case{"mul.wide.s32", {s64(-2), 0x7FFFFFFF}, s64(-0xFFFFFFFELL)},
                    Case{"mad.lo.s32", {3, 4, s64(-20)}, s64(-8)},
                    Case{"mad.lo.u64", {3, 4, 5}, 17},
                    Case{"div.u32", {7, 2}, 3},
                    Case{"div.u64", {kAll, 2}, kAll >> 1},
                    Case{"div.s64", {s64(-7), 2}, s64(-3)},
                    Case{"div.s64",
                         {s64(std::numeric_limits<std::int64_t>::min()), s64(-1)},
                         s64(std::numeric_limits<std::int64_t>::min())},
                    Case{"min.s32", {s64(-1), 1}, kAll},
                    Case{"min.u32", {0xFFFFFFFF, 1}, 1},
                    Case{"max.s64", {s64(-1), 1}, 1},
                    Case{"max.u64", {kAll, 1}, kAll},
                    Case{"neg.s32", {5}, s64(-5)},
                    Case{"neg.s64", {s64(-5)}, 5}));

INSTANTIATE_TEST_SUITE_P(
    Bits,
    Evaluate,
    testing::Values(Case{"and.b32", {0xF0F0F0F0FF, 0x0FF0}, 0x00F0},
                    Case{"or.b16", {0xF000, 0x10F0F}, 0xFF0F},
                    Case{"xor.b64", {kAll, 1}, kAll - 1},
                    Case{"not.b32", {0}, 0xFFFFFFFF},
                    Case{"not.pred", {1}, 0},
                    Case{"and.pred", {1, 0}, 0},
                    Case{"or.pred", {1, 0}, 1},
                    Case{"xor.pred", {1, 1}, 0},
                    Case{"shl.b32", {0x80000001, 1}, 2},
                    Case{"shl.b32", {1, 32}, 0},
                    Case{"shl.b64", {1, 63}, Bits{1} << 63},
                    Case{"shr.u32", {0x80000000, 31}, 1},
                    Case{"shr.u32", {0x80000000, 32}, 0},
                    Case{"shr.s32", {s64(-8), 1}, s64(-4)},
                    Case{"shr.s32", {s64(-8), 200}, kAll},
                    Case{"shr.u64", {kAll, 60}, 15},
                    Case{"shr.s64", {s64(-1), 64}, kAll},
                    Case{"shr.b32", {0x80000000, 4}, 0x08000000},
                    Case{"popc.b32", {0x1F0F0F0F0}, 16},
                    Case{"prmt.b32", {0x44332211, 0x88776655, 0x7210}, 0x88332211},
                    Case{"prmt.b32", {0x44332211, 0x88776655, 4180}, 0x22116655},  // 0x1054
                    Case{"prmt.b32", {0x44332211, 0x88776655, 0xF8F8}, 0xFF00FF00},
                    Case{"brev.b32", {0x00000003}, 0xC0000000},
                    Case{"bfi.b32", {0xFFFFFF12, 0xAAAAAAAA, 8, 8}, 0xAAAA12AA},
                    Case{"bfi.b32", {0x12345678, 0xAAAAAAAA, 16, 200}, 0x5678AAAA},
                    Case{"bfi.b32", {0x12345678, 0xAAAAAAAA, 5, 0}, 0xAAAAAAAA},
                    Case{"bfi.b32", {0x12345678, 0xAAAAAAAA, 32, 8}, 0xAAAAAAAA},
                    Case{"bfi.b32", {1, 0, 0x102, 0x101}, 4},
                    Case{"bfind.shiftamt.u32", {1}, 31},
                    Case{"bfind.shiftamt.u32", {0x80000000}, 0},
                    Case{"bfind.shiftamt.u32", {0}, 0xFFFFFFFF},
                    Case{"mov.u32", {0x1FFFFFFFF}, 0xFFFFFFFF},
                    Case{"mov.pred", {1}, 1},
                    Case{"cvta.to.global.u64", {kAll}, kAll},
                    Case{"selp.b32", {1, 2, 1}, 1},
                    Case{"selp.f32", {1, 2, 0}, 2}));

INSTANTIATE_TEST_SUITE_P(Comparisons,
                         Evaluate,
                         testing::Values(Case{"setp.eq.s32", {s64(-1), 0xFFFFFFFF}, 1},
                                         Case{"setp.ne.b64", {1, 2}, 1},
                                         Case{"setp.lt.s32", {s64(-1), 0}, 1},
                                         Case{"setp.lt.u32", {0xFFFFFFFF, 0}, 0},
                                         Case{"setp.le.u64", {5, 5}, 1},
                                         Case{"setp.gt.s64", {s64(-1), 0}, 0},
                                         Case{"setp.ge.s64", {0, s64(-1)}, 1},
                                         Case{"setp.lt.f32", {f(-1), f(0)}, 1},
                                         Case{"setp.eq.f32", {f(0.0F), f(-0.0F)}, 1},
                                         Case{"setp.eq.f32", {kNan, kNan}, 0},
                                         Case{"setp.ne.f32", {kNan, f(1)}, 0},
                                         Case{"setp.ge.f32", {kNan, f(1)}, 0},
                                         Case{"setp.gt.f32", {f(2), f(1)}, 1}));

INSTANTIATE_TEST_SUITE_P(
    Floats,
    Evaluate,
    testing::Values(Case{"add.f32", {f(1), f(0x1p-24F)}, f(1)},  // a tie goes to the even one
                    Case{"add.f32", {f(1), f(0x1.8p-23F)}, f(1 + 0x1p-22F)},
                    Case{"add.f32", {f(kInfinity), f(-kInfinity)}, kNan},
                    Case{"sub.f32", {f(1), f(3)}, f(-2)},
                    Case{"mul.f32", {f(0x1p-126F), f(0.5F)}, f(0x1p-127F)},  // no flush to zero
                    Case{"mul.f32", {f(0), f(kInfinity)}, kNan},
                    Case{"fma.rn.f32",
                         {f(1 + 0x1p-12F), f(1 + 0x1p-12F), f(-1)},
                         f(0x1p-11F + 0x1p-24F)},  // rounded once
                    Case{"div.rn.f32", {f(1), f(3)}, f(1.0F / 3.0F)},
                    Case{"div.rn.f32", {f(1), f(0)}, f(kInfinity)},
                    Case{"rcp.rn.f32", {f(-0.0F)}, f(-kInfinity)},
                    Case{"sqrt.rn.f32", {f(2)}, f(std::sqrt(2.0F))},
                    Case{"sqrt.rn.f32", {f(-1)}, kNan},
                    Case{"abs.f32", {f(-3)}, f(3)},
                    Case{"neg.f32", {f(0)}, f(-0.0F)},
                    Case{"copysign.f32", {f(-1), f(5)}, f(-5)}));

INSTANTIATE_TEST_SUITE_P(
    Conversions,
    Evaluate,
    testing::Values(Case{"cvt.u64.u32", {0x1FFFFFFFF}, 0xFFFFFFFF},
                    Case{"cvt.s64.s32", {0xFFFFFFFF}, kAll},
                    Case{"cvt.u32.u64", {0x123456789}, 0x23456789},
                    Case{"cvt.u16.u32", {0x12345}, 0x2345},
                    Case{"cvt.s32.s8", {0x80}, s64(-128)},
                    Case{"cvt.rn.f32.u32", {0xFFFFFFFF}, f(4294967296.0F)},
                    Case{"cvt.rn.f32.s64", {s64(-3)}, f(-3)},
                    Case{"cvt.rzi.u32.f32", {f(3.9F)}, 3},
                    Case{"cvt.rzi.u32.f32", {f(-1)}, 0},
                    Case{"cvt.rzi.u32.f32", {f(1e20F)}, 0xFFFFFFFF},
                    Case{"cvt.rzi.u32.f32", {kNan}, 0},
                    Case{"cvt.rn.bf16.f32", {f(1 + 0x1p-8F)}, 0x3F80},  // a tie
                    Case{"cvt.rn.bf16.f32", {f(1 + 0x1.8p-7F)}, 0x3F82},
                    Case{"cvt.rn.bf16.f32", {f(std::numeric_limits<float>::max())}, 0x7F80},
                    Case{"cvt.rn.bf16.f32", {f(0x1p-133F)}, 0x0001},
                    Case{"cvt.rn.bf16.f32", {kNan}, 0x7FFF},
                    Case{"cvt.rn.f16.f32", {f(-65519)}, 0xFBFF},
                    Case{"cvt.rn.f16.f32", {f(65520)}, 0x7C00},
                    Case{"cvt.rn.f16.f32", {f(0x1p-25F)}, 0},  // a tie
                    Case{"cvt.rn.f16.f32", {f(0x1.8p-25F)}, 1},
                    Case{"cvt.f32.f16", {0x3C01}, f(1 + 0x1p-10F)},
                    Case{"cvt.f32.f16", {0x8001}, f(-0x1p-24F)},
                    Case{"cvt.f32.f16", {0xFC00}, f(-kInfinity)},
                    Case{"cvt.f32.f16", {0x7C01}, kNan}));

TEST(Convert, EveryHalfComesBack) {
  const Instruction up = instruction("cvt.f32.f16", 1), down = instruction("cvt.rn.f16.f32", 1);
  for (Bits half = 0; half < 0x10000; ++half) {
    if ((half & 0x7FFF) > 0x7C00) continue;  // NaN
    const Bits wide = evaluate(up, std::vector{half});
    ASSERT_EQ(evaluate(down, std::vector{wide}), half);
  }
}

TEST(Convert, EveryBf16ComesBackAndTheMiddleGoesToTheEvenOne) {
  const Instruction down = instruction("cvt.rn.bf16.f32", 1);
  for (Bits bf16 = 0; bf16 < 0x7F80; ++bf16) {
    ASSERT_EQ(evaluate(down, std::vector{bf16 << 16}), bf16);
    ASSERT_EQ(evaluate(down, std::vector{bf16 << 16 | 0x7FFF}), bf16);
    ASSERT_EQ(evaluate(down, std::vector{bf16 << 16 | 0x8000}), bf16 + bf16 % 2);
    ASSERT_EQ(evaluate(down, std::vector{bf16 << 16 | 0x8001}), bf16 + 1);
  }
}

TEST(Forms, ThatAreNotModelledAreRefusedWithTheirPlace) {
  for (const char* opcode :
       {"add.f64", "add.rz.f32", "fma.rn.ftz.f32", "mul.s32", "cvt.rni.s32.f32", "setp.equ.f32",
        "atom.add.u32", "membar.gl", "bfind.u32", "div.full.f32", "ld.volatile.global.u32",
        "vote.sync.all.pred", "redux.sync.add.s32", "shfl.sync.bfly.b32"}) {
    SCOPED_TRACE(opcode);
    EXPECT_THAT([&] { instruction(opcode, 2); },
                ThrowsMessage<simt::Fault>(
                    testing::AllOf(HasSubstr("one.ptx:4: "), HasSubstr("is not modelled"))));
  }
}

}  // namespace
}  // namespace ptx
