#pragma once

namespace simt {

inline constexpr int kRuntime = 13000;  // the CUDA that the programs are built with

/// The machine that the executor stands for; how many devices it has: device.h.
struct Machine {
  int driver = kRuntime;         // SIMT_DRIVER: of the CUDA that it is for; 0: there is none
  int compute_capability = 90;   // SIMT_CAPABILITY, of every device
  bool has_peers = true;         // SIMT_PEERS, 0 or 1: devices read each other's memory
  int registered_mib = 1 << 20;  // SIMT_REGISTERED_MIB: at most so much may be registered
};

/// As the environment said at the first call.
const Machine& machine();

}  // namespace simt
