#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace satrap {

/// The properties of a CPU that satrap uses.
struct Cpu {
  std::string name;    // "AMD EPYC 9654 96-Core Processor", "ARM Neoverse V2"
  std::string vendor;  // from the kernel: "AuthenticAMD"; on ARM the implementer: "0x41"
  std::vector<std::string>
      features;  // those that satrap uses, by the kernel's names; empty: unknown

  bool has(std::string_view feature) const;
};

enum class Architecture { kX86, kArm };

/// Parses /proc/cpuinfo of a machine of that architecture. Ignores fields of other architectures:
/// an emulator may show those of its host.
Cpu parse_cpuinfo(std::istream& text, Architecture architecture);

/// This machine's. Reads /proc/cpuinfo.
Cpu inspect_cpu();

/// The widest vector instructions the compiler was allowed to use in this program.
struct CompiledInstructions {
  std::string_view name;     // "AVX-512"
  std::string_view feature;  // that a CPU needs, as in Cpu::features; "": every CPU has them
};
CompiledInstructions compiled_instructions();

}  // namespace satrap
