#include "satrap/app/main.h"

int main(int argc, char** argv) { return satrap::app::ps_main(argc, argv); }
