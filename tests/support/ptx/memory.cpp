#include "tests/support/ptx/memory.h"

#include <algorithm>
#include <bit>
#include <span>

#include <cuda_runtime_api.h>

namespace ptx {

std::string Accesses::note(std::uint64_t address,
                           std::uint64_t bytes,
                           bool writes,
                           std::uint32_t warp,
                           int line) {
  for (std::uint64_t at = address; at < address + bytes; ++at) {
    std::string race = touch(page_of(at)[at % kPageBytes], writes, warp, line);
    if (!race.empty()) return race;
  }
  return {};
}

Sectors Accesses::sectors() const {
  constexpr std::size_t kSectorBytes = 32;
  Sectors sum;
  for (const auto& [number, page] : pages_) {
    for (std::size_t begin = 0; begin < kPageBytes; begin += kSectorBytes) {
      const auto bytes = std::span(*page).subspan(begin, kSectorBytes);
      const auto is_read = [](const Byte& byte) { return byte.reader != Byte::kNobody; };
      const auto is_written = [](const Byte& byte) { return byte.writer != Byte::kNobody; };
      sum.read += std::ranges::any_of(bytes, is_read) ? 1 : 0;
      sum.written += std::ranges::any_of(bytes, is_written) ? 1 : 0;
    }
  }
  return sum;
}

Accesses::Page& Accesses::page_of(std::uint64_t address) {
  const std::uint64_t number = address / kPageBytes;
  if (number != last_number_) {
    std::unique_ptr<Page>& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_number_ = number;
    last_page_ = page.get();
  }
  return *last_page_;
}

std::string Accesses::touch(Byte& byte, bool writes, std::uint32_t warp, int line) {
  const auto race = [](const char* what, int at) {
    return std::string("race: another warp ") + what + " this byte in line " + std::to_string(at);
  };
  if (byte.writer != Byte::kNobody && byte.writer != warp) return race("writes", byte.write_line);
  if (writes) {
    if (byte.has_several_readers || (byte.reader != Byte::kNobody && byte.reader != warp)) {
      return race("reads", byte.read_line);
    }
    byte.writer = warp;
    byte.write_line = line;
  } else {
    byte.has_several_readers |= byte.reader != Byte::kNobody && byte.reader != warp;
    byte.reader = warp;
    byte.read_line = line;
  }
  return {};
}

std::string GlobalMemory::check(std::uint64_t address,
                                std::uint64_t bytes,
                                bool writes,
                                std::uint32_t warp,
                                int line) {
  if (!is_allocated(address, bytes)) return "outside of every allocation";
  return accesses_.note(address, bytes, writes, warp, line);
}

bool GlobalMemory::is_allocated(std::uint64_t address, std::uint64_t bytes) {
  const auto within = [&] {
    return lies_within(address, bytes, std::bit_cast<std::uint64_t>(allocation_.data()),
                       allocation_.size());
  };
  if (within()) return true;
  allocation_ = simt::allocation_of(std::bit_cast<const void*>(address));
  return within();
}

}  // namespace ptx
