#include "satrap/pipeline/model.h"

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/pipeline/load_job.h"
#include "tests/support/temporary_directory.h"

namespace satrap::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Why a job of several ranks with a cache is refused, before it looks for its shards.
class ModelOfRanks : public testing::Test {
 protected:
  std::string refusal(std::int64_t num_ranks,
                      std::int64_t local_ranks,
                      const std::string& setting) {
    write_file_atomic(directory_.path() + "/job.yaml",
                      "run_dir: runs/a\ndata: {format: synthetic}\n"
                      "tables: {default: {dim: 4}}\n"
                      "model: {type: dlrm, bottom: [8], top: [8]}\n"
                      "embedding: {store: ps, cache: {memory: 1MiB}}\n");
    const job::JobConfig config = load_job(directory_.path() + "/job.yaml", {setting});
    job::ClusterConfig ranks;
    ranks.num_ranks = num_ranks;
    ranks.num_local_ranks = local_ranks;
    ranks.num_shards = 1;
    ranks.store = "file://" + directory_.path() + "/store";
    try {
      Cluster cluster(config, ranks);
      Model(config, data::resolve_schema(config.data), cluster, pool_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
      return error.what();
    }
    return "";
  }
  const TemporaryDirectory directory_;
  ThreadPool pool_{1};
};

TEST_F(ModelOfRanks, HasACacheOfAtMost64) {
  EXPECT_THAT(refusal(65, 65, "seed=1"),
              AllOf(HasSubstr("embedding.cache.memory: "), HasSubstr("at most 64 ranks")));
}

}  // namespace
}  // namespace satrap::pipeline
