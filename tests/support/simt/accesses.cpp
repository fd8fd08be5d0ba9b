// What kernels read and write: they are compiled with -fsanitize=thread (CMakeLists.txt), for which
// compilers put a call before each access. The program is linked without that sanitizer's library;
// these functions take its place. A function that is missing here is an error of the linker: so far
// no kernel uses std::atomic.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/support/simt/races.h"

namespace {

using simt::Races;

template <bool kWrites, std::size_t kBytes>
void note(const void* address, void* site) {
  if (Races* const races = Races::watching) {
    races->touch<kWrites, kBytes>(std::bit_cast<std::uintptr_t>(address),
                                  std::bit_cast<std::uintptr_t>(site));
  }
}

template <bool kWrites>
void note_range(const void* address, std::size_t bytes, void* site) {
  if (Races* const races = Races::watching) {
    races->touch_range<kWrites>(std::bit_cast<std::uintptr_t>(address), bytes,
                                std::bit_cast<std::uintptr_t>(site));
  }
}

}  // namespace

#define SIMT_SITE __builtin_return_address(0)
#define SIMT_ACCESSES(bytes)                                                                   \
  void __tsan_read##bytes(void* address) { note<false, bytes>(address, SIMT_SITE); }           \
  void __tsan_write##bytes(void* address) { note<true, bytes>(address, SIMT_SITE); }           \
  void __tsan_unaligned_read##bytes(void* address) { note<false, bytes>(address, SIMT_SITE); } \
  void __tsan_unaligned_write##bytes(void* address) { note<true, bytes>(address, SIMT_SITE); }

extern "C" {

SIMT_ACCESSES(1)
SIMT_ACCESSES(2)
SIMT_ACCESSES(4)
SIMT_ACCESSES(8)
SIMT_ACCESSES(16)

void __tsan_read_range(void* address, std::size_t bytes) {
  note_range<false>(address, bytes, SIMT_SITE);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  note_range<true>(address, bytes, SIMT_SITE);
}

// Calls of clang's for the functions of the same name.
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  note_range<false>(from, bytes, SIMT_SITE);
  note_range<true>(to, bytes, SIMT_SITE);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  note_range<false>(from, bytes, SIMT_SITE);
  note_range<true>(to, bytes, SIMT_SITE);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* memory, int byte, std::size_t bytes) {
  note_range<true>(memory, bytes, SIMT_SITE);
  return std::memset(memory, byte, bytes);
}

// No memory of a device: tables of virtual functions.
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_init() {}

}  // extern "C"
