#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace satrap::cli {

/// What the command line asked for. Returns the exit status or throws.
using Action = std::function<int()>;

/// Runs a program: parses the command line with `program`, then does what was `chosen` by it.
/// `prepare` adds options and commands. Every exception becomes lines `error: …` on stderr and an
/// exit status, here and nowhere else.
int run_program(CLI::App& program,
                int argc,
                char** argv,
                const std::function<void(Action& chosen)>& prepare);

}  // namespace satrap::cli
