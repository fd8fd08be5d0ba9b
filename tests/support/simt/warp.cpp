#include "tests/support/simt/warp.h"

#include <sstream>

namespace simt {

void Meeting::leave(std::uint32_t lane) {
  to_leave &= ~lane;
  if (to_leave == 0) arrived = 0;
}

void Warp::reset(std::uint32_t existing_lanes) {
  for (Meeting& meeting : meetings) meeting.arrived = meeting.to_leave = 0;
  newest = nullptr;
  existing = existing_lanes;
  ended = 0;
}

Meeting* Warp::older_waiting(std::uint32_t lanes) {
  for (Meeting& meeting : meetings) {
    if (meeting.names(lanes)) return &meeting;
  }
  return nullptr;
}

Meeting& Warp::begin(Collective kind, std::uint32_t mask, std::source_location where) {
  Meeting* meeting = nullptr;
  for (Meeting& old : meetings) {
    if (old.to_leave == 0 && old.arrived == 0) meeting = &old;
  }
  if (meeting == nullptr) meeting = &meetings.emplace_back();
  meeting->mask = mask;
  meeting->kind = kind;
  meeting->where = where;
  newest = meeting;
  return *meeting;
}

const char* name_of(Collective kind) {
  switch (kind) {
    case Collective::kSyncWarp:
      return "__syncwarp";
    case Collective::kShuffle:
      return "__shfl_sync";
    case Collective::kBallot:
      return "__ballot_sync";
    case Collective::kMatch:
      return "__match_any_sync";
    case Collective::kReduce:
      return "__reduce_sync";
  }
  return "?";
}

std::string text(std::source_location where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

std::string hex(std::uint32_t mask) {
  std::ostringstream out;
  out << "0x" << std::hex << mask;
  return out.str();
}

}  // namespace simt
