#include "tests/support/simt/machine.h"

#include <cstdlib>
#include <string>

namespace simt {
namespace {

void read(const char* name, int& value) {
  if (const char* const text = std::getenv(name)) value = std::stoi(text);
}

Machine read_environment() {
  Machine machine;
  int has_peers = 1;
  read("SIMT_DRIVER", machine.driver);
  read("SIMT_CAPABILITY", machine.compute_capability);
  read("SIMT_PEERS", has_peers);
  read("SIMT_REGISTERED_MIB", machine.registered_mib);
  machine.has_peers = has_peers != 0;
  return machine;
}

}  // namespace

const Machine& machine() {
  static const Machine machine = read_environment();
  return machine;
}

}  // namespace simt
