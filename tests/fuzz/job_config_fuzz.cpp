// A job's configuration: any text is a job or is refused, and what the job is dumped as is the same
// job.
#include <string>

#include "satrap/core/config.h"
#include "satrap/data/schema.h"
#include "satrap/job/embedding_specs.h"
#include "satrap/job/job_config.h"
#include "satrap/job/read_job.h"
#include "tests/fuzz/file.h"

namespace {

using satrap::fuzz::fail;
using satrap::fuzz::is_refused;

void read(const std::string& path) {
  satrap::ConfigOrigins origins;
  satrap::job::JobConfig config = satrap::job::read_job(path, {}, origins);
  const std::string dumped = satrap::dump_config(config);
  satrap::fuzz::MemoryFile again;
  again.set(dumped);
  satrap::job::JobConfig same;
  const bool refused = is_refused([&] { same = satrap::job::read_job(again.path(), {}, origins); });
  if (refused) fail("refused as it was dumped:\n" + dumped);
  if (satrap::dump_config(same) != dumped) fail("another job as it was dumped:\n" + dumped);
  satrap::job::embedding_specs(config, satrap::data::resolve_schema(config.data));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const satrap::fuzz::MemoryFile file;
  file.set(satrap::fuzz::text_of(data, size));
  is_refused([] { read(file.path()); });
  return 0;
}
