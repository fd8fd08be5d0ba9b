#include "satrap/collective/communicator.h"

#include <vector>

#include "satrap/core/error.h"

namespace satrap::collective {

void Communicator::all_gather(std::span<const std::byte> mine,
                              std::span<std::byte> all,
                              net::Deadline deadline) {
  const auto ranks = static_cast<std::size_t>(size());
  SATRAP_CHECK(all.size() == mine.size() * ranks, "all_gather of ", mine.size(),
               " bytes of each of ", ranks, " ranks into ", all.size());
  const std::vector<std::span<const std::byte>> to(ranks, mine);
  std::vector<std::span<std::byte>> from;
  for (std::size_t r = 0; r < ranks; ++r) from.push_back(all.subspan(r * mine.size(), mine.size()));
  all_to_all(to, from, deadline);
}

}  // namespace satrap::collective
