#include <CLI/CLI.hpp>

#include "commands.h"
#include "program.h"
#include "satrap/app/main.h"

namespace satrap::app {

int ps_main(int argc, char** argv) {
  CLI::App program("One parameter-server shard of a job.", "satrap-ps");
  return run_program(program, argc, argv,
                     [&](Action& chosen) { add_ps_arguments(program, chosen); });
}

}  // namespace satrap::app
