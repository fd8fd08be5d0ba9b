#pragma once

#include <cstdint>
#include <deque>
#include <source_location>
#include <string>

#include "tests/support/simt/executor.h"

namespace simt {

/// Lanes of one warp that take part in one collective.
struct Meeting {
  std::uint32_t mask = 0, arrived = 0, to_leave = 0;
  Collective kind{};
  std::source_location where;
  std::uint64_t values[kWarpSize] = {};

  bool waits() const { return arrived != 0 && to_leave == 0; }
  bool names(std::uint32_t lanes) const { return waits() && (mask & lanes) != 0; }
  void leave(std::uint32_t lane);  // the bit of a lane that has completed it
};

/// The collectives that lanes of one warp are in.
struct Warp {
  std::deque<Meeting> meetings;  // addresses stay; reused when empty
  Meeting* newest = nullptr;     // the one begun last, which lanes mostly join
  std::uint32_t existing = 0;    // lanes of the block
  std::uint32_t ended = 0;       // lanes

  /// Forgets what an earlier block left. Keeps memory.
  void reset(std::uint32_t existing_lanes);

  /// The meeting in which lanes wait and whose mask names any of these; null: none.
  Meeting* waiting(std::uint32_t lanes) {
    return newest != nullptr && newest->names(lanes) ? newest : older_waiting(lanes);
  }
  Meeting* older_waiting(std::uint32_t lanes);
  Meeting& begin(Collective kind, std::uint32_t mask, std::source_location where);
};

/// For messages.
const char* name_of(Collective kind);
std::string text(std::source_location where);  // "pool.cu:12"
std::string hex(std::uint32_t mask);

}  // namespace simt
