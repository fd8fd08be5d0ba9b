#include "satrap/data/pass_progress.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"

namespace satrap::data {
namespace {

constexpr std::chrono::seconds kFirstAfter{2}, kEvery{10};

}  // namespace

PassProgress::PassProgress(std::string what,
                           std::int64_t total_bytes,
                           const std::atomic<bool>* stop)
    : what_(std::move(what)),
      total_bytes_(total_bytes),
      stop_(stop),
      next_(Clock::now() + kFirstAfter) {}

void PassProgress::note(std::int64_t bytes_read) {
  if (stop_ != nullptr && *stop_) throw Error(ErrorCode::kIo, concat(what_, " was stopped"));
  if (Clock::now() < next_) return;
  next_ = Clock::now() + kEvery;
  const std::string all = total_bytes_ > 0 ? concat(" of ", format_bytes(total_bytes_)) : "";
  log_info("{}: {}{}", what_, format_bytes(bytes_read), all);
}

}  // namespace satrap::data
