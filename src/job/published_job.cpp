#include "satrap/job/published_job.h"

#include <string>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/net/net_error.h"

namespace satrap::job {
namespace {

constexpr const char* kKey = "job";
constexpr std::int64_t kOneWaitMs = 60'000;

}  // namespace

void publish_job(const JobConfig& job, net::Rendezvous& store) {
  const std::string text = dump_config(job);
  if (std::ssize(text) > net::Rendezvous::kMaxValueBytes) {
    throw Error(
        ErrorCode::kInvalidConfig,
        concat("the job has ", text.size(), " bytes of configuration, and shards get at most ",
               net::Rendezvous::kMaxValueBytes, " from rank 0"));
  }
  store.set(kKey, text);
}

JobConfig wait_for_job(net::Rendezvous& store, const std::atomic<bool>& stop) {
  for (;;) {
    try {
      JobConfig job;
      load_config_text(job, store.wait(kKey, net::Deadline::after_ms(kOneWaitMs).unless(stop)),
                       "the job of rank 0");
      return job;
    } catch (const net::NetError& error) {
      if (error.failure() != net::NetFailure::kTimeout) throw;
    }
  }
}

}  // namespace satrap::job
