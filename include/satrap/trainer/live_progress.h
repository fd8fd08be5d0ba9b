#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace satrap::trainer {

/// What a run is doing, for somebody who watches it between its reports: written by the thread of
/// train(), read by any other.
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

  std::atomic<Phase> phase = Phase::kStarting;
  std::atomic<std::int64_t> step = 0, examples = 0;  // of the whole job
  std::atomic<double> share = -1.0;                  // as Report::progress
  std::atomic<std::int64_t> evaluated = 0;           // examples of the evaluation that goes on

  const char* phase_name() const { return kPhaseNames[static_cast<std::size_t>(phase.load())]; }
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
