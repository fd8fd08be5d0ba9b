#include "satrap/core/hash.h"

#define XXH_STATIC_LINKING_ONLY  // for the size of XXH3_state_t; all functions used are stable
#include <fmt/format.h>
#include <xxhash.h>

namespace satrap {

std::uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct RunningHash::State {
  XXH3_state_t xxh3;
};

RunningHash::RunningHash() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
RunningHash::~RunningHash() = default;

void RunningHash::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t RunningHash::digest() const { return XXH3_64bits_digest(&state_->xxh3); }

std::string to_hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace satrap
