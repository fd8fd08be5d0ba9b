#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace satrap::cli {

/// The command chosen on the command line. Returns the exit status or throws.
using Action = std::function<int()>;

/// Runs a program: parses the command line with `program`, then runs the `chosen` action.
/// `prepare` adds options and commands. Only this function turns an exception into lines `error: …`
/// on stderr and an exit status.
int run_program(CLI::App& program,
                int argc,
                char** argv,
                const std::function<void(Action& chosen)>& prepare);

/// Ends the help of a command with a text, if there is one, and an example, which names the command
/// in full.
void end_help(CLI::App& command, const std::string& example, const std::string& text = "");

}  // namespace satrap::cli
