#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace satrap {

/// The CPU of this machine, as far as satrap cares.
struct Cpu {
  std::string name;    // "AMD EPYC 9654 96-Core Processor", "ARM Neoverse V2"
  std::string vendor;  // as the kernel says: "AuthenticAMD"; on ARM the implementer: "0x41"
  std::vector<std::string>
      features;  // those that matter here, by the kernel's names; empty: not told

  bool has(std::string_view feature) const;
};

enum class Architecture { kX86, kArm };

/// What /proc/cpuinfo says of a machine of that architecture. Fields of another one are not looked
/// at: an emulator may show those of its host.
Cpu parse_cpuinfo(std::istream& text, Architecture architecture);

/// This machine's. Reads /proc/cpuinfo.
Cpu inspect_cpu();

/// The widest vector instructions the compiler was allowed to use in this program.
struct CompiledInstructions {
  std::string_view name;     // "AVX-512"
  std::string_view feature;  // of the CPUs that have them, as in Cpu::features; "": all have them
};
CompiledInstructions compiled_instructions();

}  // namespace satrap
