#pragma once

#include <string>
#include <vector>

#include "satrap/app/host_program.h"

namespace satrap::app {

/// The `satrap` program: reads the command line, runs one command and returns the exit status:
///   0        done; `train` only if it finished
///   1        an error of the outside world: data, files, a corrupted checkpoint, a bug
///   2        the configuration or the command line is wrong
///   128 + n  a job was stopped by signal n (SIGINT, SIGTERM) and has written a checkpoint
/// Results go to standard output, everything else to standard error; an error is a line
/// `error: …`, one for each problem of a configuration. Sets how the process treats signals:
/// call it once, from the main thread, before there are others.
int main(int argc, char** argv);

/// One command on this thread, in the process of `host`. Returns the exit status; throws the errors
/// for which main() prints lines, but of the command line.
int run_command(const std::vector<std::string>& words, const HostProgram& host);

}  // namespace satrap::app
