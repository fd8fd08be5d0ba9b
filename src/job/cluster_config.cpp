#include "satrap/job/cluster_config.h"

#include <charconv>
#include <cstdlib>

#include "satrap/core/error.h"

namespace satrap::job {
namespace {

std::optional<std::int64_t> number_if_set(const ClusterConfig::Lookup& variable,
                                          const std::string& name) {
  const std::optional<std::string> text = variable(name);
  if (!text || text->empty()) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("environment: ", name, " must be a number from 0 on, got '", *text, "'"));
  }
  return value;
}

std::int64_t number(const ClusterConfig::Lookup& variable,
                    const std::string& name,
                    std::int64_t fallback) {
  return number_if_set(variable, name).value_or(fallback);
}

}  // namespace

ClusterConfig ClusterConfig::from(const Lookup& variable) {
  const auto text = [&](const std::string& name, const std::string& fallback) {
    return variable(name).value_or(fallback);
  };
  ClusterConfig config;
  config.rank = number(variable, "RANK", 0);
  config.num_ranks = number(variable, "WORLD_SIZE", 1);
  config.num_local_ranks = number(variable, "LOCAL_WORLD_SIZE", 0);
  config.local_rank = number_if_set(variable, "LOCAL_RANK");
  config.num_shards = number(variable, "SATRAP_SHARDS", 0);
  config.store = text("SATRAP_STORE", "");
  config.token = text("SATRAP_TOKEN", "");
  config.interface = text("SATRAP_INTERFACE", config.interface);
  const std::int64_t attempt =
      number(variable, "SATRAP_ATTEMPT", number(variable, "TORCHELASTIC_RESTART_COUNT", 0));
  config.job = concat("job-", text("TORCHELASTIC_RUN_ID", "0"), "/attempt-", attempt, "/");
  if (config.num_ranks < 1 || config.rank >= config.num_ranks) {
    throw Error(ErrorCode::kInvalidConfig, concat("environment: RANK must be less than WORLD_SIZE, "
                                                  "got RANK ",
                                                  config.rank, " of ", config.num_ranks));
  }
  const std::int64_t local = config.num_local_ranks > 0 ? config.num_local_ranks : config.num_ranks;
  if (config.local_rank && *config.local_rank >= local) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("environment: LOCAL_RANK must be less than ",
                       config.num_local_ranks > 0 ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE",
                       ", got LOCAL_RANK ", *config.local_rank, " of ", local));
  }
  if (config.num_ranks > 1 && config.store.empty()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("environment: WORLD_SIZE is ", config.num_ranks,
                       ", but SATRAP_STORE, where the ranks meet, is not set; start the job with "
                       "satrap-run, or see `satrap-run --ps-only`"));
  }
  return config;
}

ClusterConfig ClusterConfig::from_environment() {
  return from([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace satrap::job
