#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "satrap/core/mutex.h"

namespace satrap::trainer {

/// The state of a run, for somebody who watches it between its reports. The thread of train()
/// writes it; any other thread reads it.
struct LiveProgress {
  enum class Phase : std::uint8_t {
    kStarting,
    kFitting,
    kLoading,
    kReading,
    kTraining,
    kEvaluating,
    kSaving
  };
  static constexpr std::array<const char*, 7> kPhaseNames = {
      "starting", "fitting transforms", "loading", "reading", "training", "evaluating", "saving"};

  /// How far the whole job is.
  struct Trained {
    std::int64_t step = 0, examples = 0;
    double share = -1.0;  // as Report::progress
  };

  std::atomic<Phase> phase = Phase::kStarting;
  std::atomic<std::int64_t> evaluated = 0;  // examples of the evaluation that goes on

  /// A reader sees numbers that belong together.
  void set_trained(const Trained& trained) {
    const MutexLock lock(mutex_);
    trained_ = trained;
  }
  Trained trained() const {
    const MutexLock lock(mutex_);
    return trained_;
  }

  const char* phase_name() const { return kPhaseNames[static_cast<std::size_t>(phase.load())]; }

 private:
  mutable Mutex mutex_;
  Trained trained_ SATRAP_GUARDED_BY(mutex_);
};

/// Sets the phase of `live`, which may be null, for as long as this object lives.
class ScopedPhase {
 public:
  ScopedPhase(LiveProgress* live, LiveProgress::Phase phase) : live_(live) {
    if (live_ != nullptr) before_ = live_->phase.exchange(phase);
  }
  ~ScopedPhase() {
    if (live_ != nullptr) live_->phase = before_;
  }
  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

 private:
  LiveProgress* const live_;
  LiveProgress::Phase before_ = LiveProgress::Phase::kStarting;
};

}  // namespace satrap::trainer
