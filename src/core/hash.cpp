#include "satrap/core/hash.h"

#include <xxhash.h>

namespace satrap {

std::uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace satrap
