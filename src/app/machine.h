#pragma once

#include <cstdint>
#include <string>

#include "satrap/core/cpu.h"

namespace satrap::app {

/// The resources of this machine for this process, for `satrap doctor`. "" and 0 mean unknown.
struct Machine {
  Cpu cpu;
  std::int64_t online_cpus = 0;  // of the machine
  std::int64_t usable_cpus = 0;  // that this process may run on
  double cpu_quota = 0.0;        // CPUs the control group allows; 0: no limit
  std::int64_t memory_bytes = 0;
  std::int64_t available_bytes = 0;
  std::int64_t memory_limit_bytes = 0;  // of the control group; 0: no limit
  std::string libc;
};
Machine inspect_machine();

/// Short description of the machine, for the record of a run: "node-7, Intel(R) Xeon(R) …, 16 CPUs,
/// 62.8 GiB".
std::string describe_machine();

/// How this program was compiled.
struct Build {
  std::string compiler;      // "GCC 12.2.0"
  std::string type;          // "optimised, assertions off", …
  std::string instructions;  // the widest vector instructions the compiler was allowed to use
  std::string missing;       // those that this CPU lacks; "": none
  std::string sanitizers;    // "": none
};
Build inspect_build();

}  // namespace satrap::app
