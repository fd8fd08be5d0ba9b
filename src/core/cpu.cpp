#include "satrap/core/cpu.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

namespace satrap {
namespace {

#if defined(__aarch64__)
constexpr Architecture kArchitecture = Architecture::kArm;
#else
constexpr Architecture kArchitecture = Architecture::kX86;
#endif

#if defined(__AVX512F__)
constexpr CompiledInstructions kCompiled{"AVX-512", "avx512f"};
#elif defined(__AVX2__)
constexpr CompiledInstructions kCompiled{"AVX2", "avx2"};
#elif defined(__ARM_FEATURE_SVE2)
constexpr CompiledInstructions kCompiled{"SVE2", "sve2"};
#elif defined(__ARM_FEATURE_SVE)
constexpr CompiledInstructions kCompiled{"SVE", "sve"};
#elif defined(__ARM_NEON)
constexpr CompiledInstructions kCompiled{"NEON", ""};
#else
constexpr CompiledInstructions kCompiled{"the architecture's baseline", ""};
#endif

constexpr std::array kFeaturesOfX86 = {"sse4_2",      "avx",         "f16c",     "fma",
                                       "avx2",        "avx512f",     "avx512bw", "avx512_vnni",
                                       "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"};
constexpr std::array kFeaturesOfArm = {"asimd", "asimdhp", "asimddp", "atomics", "fphp", "sve",
                                       "sve2",  "bf16",    "svebf16", "i8mm",    "sme"};

/// Server cores. On ARM the kernel gives the numbers of MIDR_EL1, listed in its asm/cputype.h.
struct ArmCore {
  std::string_view implementer, part, name;
};
constexpr std::array kArmCores = {
    ArmCore{"0x41", "0xd0c", "ARM Neoverse N1"},   ArmCore{"0x41", "0xd40", "ARM Neoverse V1"},
    ArmCore{"0x41", "0xd49", "ARM Neoverse N2"},   ArmCore{"0x41", "0xd4f", "ARM Neoverse V2"},
    ArmCore{"0x41", "0xd83", "ARM Neoverse V3AE"}, ArmCore{"0x41", "0xd84", "ARM Neoverse V3"},
    ArmCore{"0x41", "0xd8e", "ARM Neoverse N3"},   ArmCore{"0xc0", "0xac3", "Ampere-1"},
    ArmCore{"0xc0", "0xac4", "Ampere-1a"}};

std::string name_of_arm(const std::string& implementer, const std::string& part) {
  if (implementer.empty()) return "an ARM CPU";
  for (const ArmCore& core : kArmCores) {
    if (core.implementer == implementer && core.part == part) return std::string(core.name);
  }
  return "ARM, implementer " + implementer + ", part " + part;
}

template <class Names>
std::vector<std::string> known(const std::string& listed, const Names& names) {
  std::vector<std::string> features;
  std::istringstream words(listed);
  for (std::string word; words >> word;) {
    if (std::ranges::find(names, word) != names.end()) features.push_back(word);
  }
  return features;
}

/// The values of the first CPU in the file, by the name of the field.
class Fields {
 public:
  explicit Fields(std::istream& text) {
    for (std::string line; std::getline(text, line) && !line.empty();) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      const std::size_t value = line.find_first_not_of(" \t", colon + 1);
      const std::size_t name_end = line.find_last_not_of(" \t", colon - 1);
      fields_.emplace_back(line.substr(0, name_end + 1),
                           value == std::string::npos ? "" : line.substr(value));
    }
  }
  std::string operator[](std::string_view name) const {
    const auto found =
        std::ranges::find(fields_, name, &std::pair<std::string, std::string>::first);
    return found == fields_.end() ? "" : found->second;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace

bool Cpu::has(std::string_view feature) const {
  return std::ranges::find(features, feature) != features.end();
}

Cpu parse_cpuinfo(std::istream& text, Architecture architecture) {
  const Fields fields(text);
  if (architecture == Architecture::kArm) {
    const std::string implementer = fields["CPU implementer"];
    return {name_of_arm(implementer, fields["CPU part"]), implementer,
            known(fields["Features"], kFeaturesOfArm)};
  }
  return {fields["model name"], fields["vendor_id"], known(fields["flags"], kFeaturesOfX86)};
}

Cpu inspect_cpu() {
  std::ifstream file("/proc/cpuinfo");
  return parse_cpuinfo(file, kArchitecture);
}

CompiledInstructions compiled_instructions() { return kCompiled; }

}  // namespace satrap
