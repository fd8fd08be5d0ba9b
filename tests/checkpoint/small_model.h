#pragma once

#include <memory>

#include "satrap/core/thread_pool.h"
#include "satrap/pipeline/cluster.h"
#include "satrap/pipeline/model.h"
#include "tests/checkpoint/small_checkpoint.h"

namespace satrap::checkpoint {

/// A model of the small job before its first step.
class SmallModel {
 public:
  explicit SmallModel(const job::JobConfig& config = small_job())
      : cluster_(config, {}), model_(config, data::resolve_schema(config.data), cluster_, pool_) {}
  pipeline::Model& model() { return model_; }

  std::unique_ptr<CheckpointContent> content(std::int64_t step) {
    auto content = small_content(step);
    content->dense.clear();
    content->capture(model_);
    return content;
  }

 private:
  ThreadPool pool_{1};
  pipeline::Cluster cluster_;
  pipeline::Model model_;
};

}  // namespace satrap::checkpoint
