#include "tests/support/ptx/warp.h"

#include <algorithm>

namespace ptx {
namespace {

/// The manual's definition of shfl.idx and shfl.up: segments of lanes from the upper bits of c, the
/// limit of a segment from its lower bits.
Exchanged shuffle(Mode mode, const std::array<Contribution, kLanes>& given, int lane) {
  const Contribution& mine = given[static_cast<std::size_t>(lane)];
  const auto self = static_cast<std::uint32_t>(lane);
  const std::uint32_t segment_mask = mine.clamp >> 8 & 31U, clamp = mine.clamp & 31U;
  const std::uint32_t limit = (self & segment_mask) | (clamp & ~segment_mask);
  const std::uint32_t first = self & segment_mask;
  const std::uint32_t distance = mine.source & 31U;
  const bool is_up = mode == Mode::kUp;
  const std::uint32_t wanted =
      is_up ? self - distance : first | (mine.source & ~segment_mask & 31U);
  const bool is_within = is_up ? self >= limit + distance : wanted <= limit;
  const std::uint32_t source = is_within ? wanted : self;
  return {given[source].value & 0xFFFFFFFFU, is_within, static_cast<int>(source)};
}

}  // namespace

Exchanged exchange(const Instruction& instruction,
                   const std::array<Contribution, kLanes>& given,
                   std::uint32_t mask,
                   int lane) {
  if (instruction.opcode == Opcode::kShfl) return shuffle(instruction.mode, given, lane);
  std::uint32_t ballot = 0, least = ~std::uint32_t{0}, most = 0;
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1U) == 0) continue;
    if ((given[l].value & 1U) != 0) ballot |= std::uint32_t{1} << l;
    least = std::min(least, static_cast<std::uint32_t>(given[l].value));
    most = std::max(most, static_cast<std::uint32_t>(given[l].value));
  }
  switch (instruction.mode) {
    case Mode::kBallot:
      return {.value = ballot};
    case Mode::kAny:
      return {.value = ballot != 0 ? 1U : 0U};
    case Mode::kMin:
      return {.value = least};
    case Mode::kMax:
      return {.value = most};
    default:  // bar.warp.sync
      return {};
  }
}

}  // namespace ptx
