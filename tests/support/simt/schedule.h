#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace simt {

/// Chooses what continues next, by a seed; without one, everything runs in order.
struct Schedule {
  /// The seed of a whole program is in its environment.
  Schedule() {
    if (const char* const seed = std::getenv("SIMT_SEED")) set(std::strtoull(seed, nullptr, 10));
  }
  void set(std::uint64_t seed) {
    shuffled = seed != 0;
    generator.seed(seed);
  }

  bool shuffled = false;
  std::mt19937_64 generator;
  std::uint64_t num_switches = 0;

  std::uint64_t draw(std::uint64_t bound) { return shuffled ? generator() % bound : 0; }
};

inline Schedule schedule;  // of all launches of the program

}  // namespace simt
