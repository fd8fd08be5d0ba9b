#include "satrap/backend/memory.h"
#include "satrap/core/error.h"

namespace satrap::backend {

Arena::Arena(Device& device, Place place, std::int64_t bytes, const char* what)
    : memory_(device, place, bytes, what), what_(what) {}

void* Arena::take_bytes(std::int64_t bytes) {
  const std::int64_t begin = used_;
  used_ += arena_bytes<std::byte>(bytes);
  SATRAP_CHECK(used_ <= memory_.bytes(), what_, ": ", bytes, " bytes after ", begin, " of ",
               memory_.bytes());
  return memory_.data() + begin;
}

}  // namespace satrap::backend
