#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace satrap::app {

/// Runs a program: parses the command line with `program`, then does what was `chosen` by it.
/// `prepare` adds options and commands. Every exception becomes lines `error: …` on stderr and an
/// exit status, here and nowhere else.
int run_program(CLI::App& program,
                int argc,
                char** argv,
                const std::function<void(Action& chosen)>& prepare);

}  // namespace satrap::app
