#include "satrap/cli/ps_main.h"

int main(int argc, char** argv) { return satrap::cli::ps_main(argc, argv); }
