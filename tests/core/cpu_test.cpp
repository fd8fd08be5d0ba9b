#include "satrap/core/cpu.h"

#include <sstream>

#include <gtest/gtest.h>

namespace satrap {
namespace {

constexpr const char* kGenoa =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\n"
    "model name\t: AMD EPYC 9654 96-Core Processor\n"
    "flags\t\t: fpu vme avx avx2 avx512f avx512_bf16 fma\n\n"
    "processor\t: 1\nvendor_id\t: AnotherOne\n";
constexpr const char* kGrace =
    "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd crc32 atomics sve sve2 bf16\n"
    "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n\n";

Cpu parse(const std::string& text, Architecture architecture) {
  std::istringstream file(text);
  return parse_cpuinfo(file, architecture);
}

TEST(Cpu, OfX86IsTheFirstOfTheFile) {
  const Cpu cpu = parse(kGenoa, Architecture::kX86);
  EXPECT_EQ(cpu.name, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(cpu.vendor, "AuthenticAMD");
  EXPECT_EQ(cpu.features,
            (std::vector<std::string>{"avx", "avx2", "avx512f", "avx512_bf16", "fma"}));
  EXPECT_TRUE(cpu.has("avx512_bf16"));
  EXPECT_FALSE(cpu.has("avx512"));
}

TEST(Cpu, OfArmIsNamedAfterItsNumbers) {
  const Cpu cpu = parse(kGrace, Architecture::kArm);
  EXPECT_EQ(cpu.name, "ARM Neoverse V2");
  EXPECT_EQ(cpu.vendor, "0x41");
  EXPECT_EQ(cpu.features, (std::vector<std::string>{"asimd", "atomics", "sve", "sve2", "bf16"}));
}

TEST(Cpu, OfArmThatIsNotKnownHasItsNumbers) {
  const Cpu cpu = parse("CPU implementer\t: 0x99\nCPU part\t: 0x123\n", Architecture::kArm);
  EXPECT_EQ(cpu.name, "ARM, implementer 0x99, part 0x123");
  EXPECT_TRUE(cpu.features.empty());
}

TEST(Cpu, FieldsOfAnotherArchitectureAreNotLookedAt) {
  const Cpu emulated = parse(kGenoa, Architecture::kArm);
  EXPECT_EQ(emulated.name, "an ARM CPU");
  EXPECT_TRUE(emulated.features.empty());
  EXPECT_EQ(parse(kGrace, Architecture::kX86).name, "");
}

TEST(Cpu, OddLinesAreIgnored) {
  for (const char* text : {"", ":", "flags", "flags:", ": \t:\n:::\nflags\t:   \n"}) {
    EXPECT_TRUE(parse(text, Architecture::kX86).features.empty()) << text;
  }
}

TEST(Cpu, ThisOneHasWhatThisProgramWasCompiledFor) {
  const std::string feature(compiled_instructions().feature);
  const Cpu cpu = inspect_cpu();
  EXPECT_FALSE(compiled_instructions().name.empty());
  EXPECT_TRUE(feature.empty() || cpu.features.empty() || cpu.has(feature)) << feature;
}

}  // namespace
}  // namespace satrap
