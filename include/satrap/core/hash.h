#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace satrap {

/// Finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection on 64 bits with full avalanche.
constexpr std::uint64_t hash64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// A hash of several numbers in order, for seeds: hash64(seed, table, key).
template <class... Rest>
constexpr std::uint64_t hash64(std::uint64_t first, std::uint64_t second, Rest... rest) {
  return hash64(hash64(first + 0x9E3779B97F4A7C15ULL) ^ (second + 0xD1B54A32D192ED03ULL),
                static_cast<std::uint64_t>(rest)...);
}

/// XXH3 of bytes: ids of strings, checksums of files.
std::uint64_t hash_bytes(std::string_view bytes);

/// hash_bytes of a text that arrives in pieces.
class RunningHash {
 public:
  RunningHash();
  ~RunningHash();
  void update(std::span<const std::byte> bytes);
  std::uint64_t digest() const;  // of everything so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 16 digits, the text form of checksums.
std::string to_hex(std::uint64_t hash);

/// Counter-based random numbers: the n-th draw of a stream is a pure function of (stream, n), so
/// that threads, shards and devices can draw them in any order. `stream` is a hash of the seeds.
struct RandomStream {
  std::uint64_t stream;

  constexpr std::uint64_t bits(std::uint64_t n) const {
    return hash64(stream + (n + 1) * 0x9E3779B97F4A7C15ULL);
  }
  /// Uniform in [0, 1), a multiple of 2^-24.
  constexpr float uniform(std::uint64_t n) const {
    return static_cast<float>(bits(n) >> 40) * 0x1.0p-24F;
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform_double(std::uint64_t n) const {
    return static_cast<double>(bits(n) >> 11) * 0x1.0p-53;
  }
  /// Uniform in [0, bound), bound >= 1 (by multiplication: bias below 2^-32 for bound < 2^32).
  constexpr std::uint64_t below(std::uint64_t n, std::uint64_t bound) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(n)) * bound) >> 64);
  }
};

}  // namespace satrap
