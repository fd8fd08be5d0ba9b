#include "satrap/core/ids.h"

#include "satrap/core/hash.h"

namespace satrap {

std::uint64_t fold_id(std::uint64_t id) { return id <= kIdMask ? id : hash64(id) & kIdMask; }

}  // namespace satrap
