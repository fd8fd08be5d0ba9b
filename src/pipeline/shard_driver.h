#pragma once

#include <cstdint>

#include "satrap/core/bounded_queue.h"
#include "satrap/core/thread_group.h"
#include "satrap/pipeline/step_driver.h"
#include "satrap/ps/step_client.h"
#include "src/pipeline/lookup_pace.h"

namespace satrap::pipeline {

/// For rows on parameter-server shards, which enforce the order of lookups and updates: a step's
/// rows are requested as soon as it is planned, and the shards answer when the mode allows it, but
/// not before the answer is needed (LookupPace); its gradients are pushed in the background. Three
/// threads: "embedding" waits for rows and pools them, "push" sums gradients by key and sends them,
/// "pushed" waits until the shards have them. The destructor stops, closes the client and joins.
class ShardDriver final : public StepDriver {
 public:
  /// `access` uses `client`.
  ShardDriver(StepQueue& queue,
              embedding::RowAccess& access,
              ps::StepClient& client,
              Options options,
              StageTimers& timers);

  bool submit(Work* work) override;
  void close() override;
  void wait_applied(std::int64_t step) override;
  bool wait_applied_for(std::int64_t step, std::chrono::milliseconds time) override;
  void stop() override;

 private:
  void start(const char* name, void (ShardDriver::*loop)());
  std::int64_t capacity() const;
  void look_up_planned();
  void push_gradients();
  void wait_pushed();

  ps::StepClient& client_;
  LookupPace pace_;
  std::int64_t last_requested_;  // step, of the planner thread
  std::int64_t last_pushed_;     // step, of the push thread
  BoundedQueue<Work*> pushed_;   // not yet accepted by the shards
  ThreadGroup threads_{[this] { ShardDriver::stop(); }};
};

}  // namespace satrap::pipeline
