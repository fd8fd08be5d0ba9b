#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace simt {

/// What the program has asked of its device.
struct Counts {
  std::int64_t launches = 0, copies = 0, copied_bytes = 0, fills = 0, allocations = 0;
  std::int64_t graph_launches = 0;
  std::int64_t collectives = 0, collective_bytes = 0;  // groups are one; bytes that this rank gives
  std::map<std::string, std::int64_t> waits_by_thread;  // calls that block the host, by its name

  void add_wait();  // of the calling thread
  std::string json() const;
};

/// What this program asks, from all threads. With SIMT_COUNTS they are written to that file at its
/// end.
Counts& counts();

}  // namespace simt
