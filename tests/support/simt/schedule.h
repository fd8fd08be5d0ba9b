#pragma once

#include <cstdint>
#include <random>

namespace simt {

/// Chooses what continues next, by a seed; without one, everything runs in order.
struct Schedule {
  bool shuffled = false;
  std::mt19937_64 generator;
  std::uint64_t num_switches = 0;

  std::uint64_t draw(std::uint64_t bound) { return shuffled ? generator() % bound : 0; }
};

inline Schedule schedule;  // of all launches of the program

}  // namespace simt
