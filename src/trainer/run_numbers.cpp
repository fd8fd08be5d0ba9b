#include "src/trainer/run_numbers.h"

#include <cstddef>
#include <iterator>

#include <nlohmann/json.hpp>

#include "satrap/core/resource.h"
#include "satrap/pipeline/stages.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

Json stage_seconds(const StageTimers& timers) {
  Json stages = Json::object();
  for (std::int64_t s = 0; s < std::int64_t{pipeline::kNumStages}; ++s) {
    stages[pipeline::kStageNames[s]] = timers.seconds(s);
  }
  return stages;
}

Json device_seconds(backend::StreamTimes& times) {
  Json seconds = Json::object();
  for (std::uint8_t kind = 0; kind < backend::StreamTimes::kNumKinds; ++kind) {
    seconds[backend::StreamTimes::kNames[kind]] =
        times.seconds(static_cast<backend::StreamTimes::Kind>(kind));
  }
  return seconds;
}

Json cache_json(const embedding::CacheCounts& counts) {
  const auto needed = static_cast<double>(counts.hits + counts.misses);
  Json curve = Json::array();
  for (const auto& point : counts.miss_curve) {
    curve.push_back({point.cache_bytes, point.miss_rate});
  }
  return {{"bytes", counts.bytes},
          {"hits", counts.hits},
          {"misses", counts.misses},
          {"hit_rate", needed == 0.0 ? Json() : Json(static_cast<double>(counts.hits) / needed)},
          {"bytes_fetched", counts.bytes_fetched},
          {"rows_written", counts.rows_written},
          {"bytes_written", counts.bytes_written},
          {"save_seconds", counts.save_seconds},
          {"miss_curve", curve},
          {"halving_bytes", counts.halving_bytes == 0 ? Json() : Json(counts.halving_bytes)}};
}

std::int64_t max_staleness(std::span<const std::int64_t> histogram) {
  for (std::int64_t s = std::ssize(histogram); s-- > 0;) {
    if (histogram[static_cast<std::size_t>(s)] > 0) return s;
  }
  return 0;
}

}  // namespace

double mean_staleness(std::span<const std::int64_t> histogram) {
  double sum = 0.0, count = 0.0;
  for (std::size_t s = 0; s < histogram.size(); ++s) {
    sum += static_cast<double>(s) * static_cast<double>(histogram[s]);
    count += static_cast<double>(histogram[s]);
  }
  return count > 0.0 ? sum / count : 0.0;
}

Json run_numbers(const Reporter::Sources& sources, std::span<const std::int64_t> histogram) {
  const pipeline::EmbeddingTables::Size size = sources.tables.size();
  Json numbers = {
      {"staleness", {{"mean", mean_staleness(histogram)}, {"max", max_staleness(histogram)}}},
      {"stage_seconds", stage_seconds(sources.timers)},
      {"rows", size.rows},
      {"table_bytes", size.bytes},
      {"resident_bytes", resident_bytes()}};
  if (const auto cache = sources.tables.cache()) numbers["cache"] = cache_json(*cache);
  if (sources.device_times != nullptr) {
    numbers["device_seconds"] = device_seconds(*sources.device_times);
  }
  if (const auto scale = sources.network.loss_scale()) {
    numbers["loss_scale"] = {{"factor", scale->factor}, {"skipped_steps", scale->skipped_steps}};
  }
  return numbers;
}

}  // namespace satrap::trainer
