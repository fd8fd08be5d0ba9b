#include "satrap/job/embedding_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"
#include "satrap/job/config_place.h"

namespace satrap::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The message with which it is refused; "" if it is not.
std::string refusal_of(const EmbeddingConfig& embedding, const ConfigOrigins& written) {
  try {
    with_place(written, [&] { embedding.validate(written); });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EmbeddingConfig, ACacheHasBytesOrAShareOfTheDevice) {
  EmbeddingConfig embedding;
  EXPECT_FALSE(embedding.has_cache());
  embedding.cache.memory = "0%";
  EXPECT_FALSE(embedding.has_cache());
  embedding.cache.memory = "1GiB";
  EXPECT_TRUE(embedding.has_cache());
  EXPECT_EQ(embedding.cache.memory_bytes(1000), 1 << 30);
  embedding.cache.memory = "25%";
  EXPECT_TRUE(embedding.has_cache());
  EXPECT_EQ(embedding.cache.memory_bytes(1000), 250);
  embedding.cache.memory = "some";
  EXPECT_THAT(refusal_of(embedding, {{"embedding.cache.memory", "job.yaml:1"}}),
              HasSubstr("job.yaml:1: embedding.cache.memory"));
}

TEST(EmbeddingConfig, AnAutomaticCacheIsForRowsOnShards) {
  EmbeddingConfig embedding;
  embedding.cache.memory = "auto";
  EXPECT_FALSE(embedding.has_cache());
  embedding.store = StoreKind::kPs;
  EXPECT_TRUE(embedding.has_cache());
  EXPECT_EQ(embedding.cache.memory_bytes(1000), 100);
}

TEST(EmbeddingConfig, AnEvictionBelongsToACache) {
  EmbeddingConfig embedding;
  embedding.cache.eviction = Eviction::kLru;
  ConfigOrigins written{{"embedding.cache.eviction", "job.yaml:1"}};
  EXPECT_THAT(refusal_of(embedding, written),
              HasSubstr("job.yaml:1: embedding.cache.eviction: there is no cache"));
  written["embedding.cache.memory"] = "job.yaml:2";  // 0: turned off
  EXPECT_THAT(refusal_of(embedding, written), Not(HasSubstr("eviction")));
}

TEST(EmbeddingConfig, OnlyRowsInTheProcessCanBeRegistered) {
  EmbeddingConfig embedding;
  embedding.cache.memory = "1MiB";
  embedding.cache.host_rows = HostRows::kRegistered;
  const ConfigOrigins written{{"embedding.cache.host_rows", "job.yaml:1"}};
  EXPECT_EQ(refusal_of(embedding, written), "");
  embedding.store = StoreKind::kPs;
  EXPECT_THAT(
      refusal_of(embedding, written),
      HasSubstr("embedding.cache.host_rows: registered is for tables in the trainer's "
                "process, and the rows of embedding.store: ps are in others; write staged"));
  embedding.cache.memory = "auto";
  embedding.store = StoreKind::kEmbedded;
  EXPECT_THAT(refusal_of(embedding, written), HasSubstr("host_rows: there is no cache"));
}

TEST(EmbeddingConfig, APolicyOfEarlierVersionsIsRefusedWithWhatToWrite) {
  EmbeddingConfig embedding;
  const ConfigOrigins written{{"embedding.cache.policy", "job.yaml:1"}};
  embedding.cache.former_policy = "shared";
  EXPECT_THAT(refusal_of(embedding, written),
              AllOf(HasSubstr("job.yaml:1: embedding.cache.policy: copies of rows are no longer"),
                    HasSubstr("leave it out, and write embedding.cache.memory: 0")));
  embedding.cache.former_policy = "mine";
  EXPECT_THAT(refusal_of(embedding, written), HasSubstr("one policy of caches now; leave it out"));
  for (const char* const harmless : {"auto", "exclusive"}) {
    embedding.cache.former_policy = harmless;
    EXPECT_EQ(refusal_of(embedding, written), "");
  }
}

}  // namespace
}  // namespace satrap::job
