#include "src/data/s3/abandonable_calls.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

namespace satrap::data {
namespace {

/// Called by exit(), before anything that a running call may use is destroyed.
void end_without_waiting(int status, void* calls) {
  if (static_cast<const AbandonableCalls*>(calls)->all_have_ended()) return;
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

AbandonableCalls::~AbandonableCalls() {
  for (std::thread& thread : abandoned_) thread.join();
}

void AbandonableCalls::abandon(std::thread thread) {
  {
    const MutexLock lock(mutex_);
    if (abandoned_.empty()) on_exit(end_without_waiting, this);
    abandoned_.push_back(std::move(thread));
  }
  throw StoreFailure(StoreFailure::Kind::kMayPass, kNoLongerAwaited);
}

}  // namespace satrap::data
