#include "satrap/cli/ps_main.h"

#include <CLI/CLI.hpp>

#include "satrap/cli/program.h"
#include "satrap/cli/ps_commands.h"

namespace satrap::cli {

int ps_main(int argc, char** argv) {
  CLI::App program("One parameter-server shard of a job.", "satrap-ps");
  return run_program(program, argc, argv,
                     [&](Action& chosen) { add_ps_arguments(program, chosen); });
}

}  // namespace satrap::cli
