#include "satrap/app/main.h"

int main(int argc, char** argv) { return satrap::app::main(argc, argv); }
