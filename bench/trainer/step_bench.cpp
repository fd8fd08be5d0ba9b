// Training alone, without reading: the batches of data.train are read into memory first, and one
// pass over them is trained on before the clock starts, which also creates the rows. Prints one
// JSON line: ex_s, CPU time of all threads per example, and what the summary of both passes says of
// the device, its stages and its cache.
//
//   trainer_step_bench CONFIG SECONDS [key.path=value ...]

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>
#include <time.h>

#include "satrap/core/error.h"
#include "satrap/pipeline/load_job.h"
#include "satrap/trainer/trainer.h"

namespace satrap::trainer {
namespace {

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Moment {
  double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
};

std::deque<data::Batch> read_all(const job::JobConfig& config) {
  const data::Dataset data(config.data);
  const auto transforms = data::fit_transforms(data, config.seed);
  const auto source =
      data::open_batches(data, transforms, data::Role::kTrain,
                         {.seed = config.seed, .batch_size = config.data.batch_size});
  std::deque<data::Batch> batches;
  for (data::Batch batch; source->next(batch);) batches.push_back(batch);
  if (batches.size() > 1) batches.pop_back();  // the last may be shorter
  return batches;
}

/// Returns the batches in turn, repeatedly, until the time is up. Nothing is copied: the trainer
/// passes in a batch that it has finished, which goes to the end of the queue.
class BatchesInMemory : public data::BatchSource {
 public:
  BatchesInMemory(std::deque<data::Batch> batches, double seconds, std::optional<Moment>& start)
      : num_batches_(batches.size()),
        batches_(std::move(batches)),
        seconds_(seconds),
        start_(start) {}

  bool next(data::Batch& batch) override {
    if (handed_out_++ == num_batches_) start_.emplace();
    if (start_ && now(CLOCK_MONOTONIC) - start_->wall > seconds_) return false;
    if (batch.num_examples != 0) batches_.push_back(std::move(batch));
    if (batches_.empty()) {
      throw Error(ErrorCode::kInvalidConfig, concat(num_batches_,
                                                    " batches of data.train are all "
                                                    "in flight at once: more rows are needed"));
    }
    batch = std::move(batches_.front());
    batches_.pop_front();
    rows_ += batch.num_examples;
    return true;
  }
  data::DataPosition position() const override {
    return {.epoch = 0, .batches = static_cast<std::int64_t>(handed_out_), .next_row = rows_};
  }
  data::ReadStats stats() const override { return {.rows = rows_}; }
  void close() override {}

 private:
  const std::size_t num_batches_;
  std::deque<data::Batch> batches_;
  const double seconds_;
  std::optional<Moment>& start_;  // of the second pass
  std::size_t handed_out_ = 0;
  std::int64_t rows_ = 0;
};

int run(int argc, char** argv) {
  std::vector<std::string> overrides(argv + 3, argv + argc);
  const auto directory = std::filesystem::temp_directory_path() / "satrap_step_bench";
  for (const char* fixed : {"checkpoint.every=never", "train.report_every=1h", "train.epochs=1"}) {
    overrides.emplace_back(fixed);
  }
  overrides.push_back("run_dir=" + directory.string());
  const job::JobConfig config = satrap::pipeline::load_job(argv[1], overrides);
  std::deque<data::Batch> batches = read_all(config);
  const std::size_t num_batches = batches.size();
  const std::int64_t rows = batches.front().num_examples;

  std::optional<Moment> start;
  Moment end;
  TrainOptions options{.overwrite = true};
  options.open_batches = [&](const data::ReadOptions&) {
    return std::make_unique<BatchesInMemory>(std::move(batches), std::atof(argv[2]), start);
  };
  std::int64_t examples = 0;
  options.on_report = [&](const Report& report) {
    end = Moment();
    examples = report.examples;
  };
  const TrainOutcome outcome = train(config, options);
  nlohmann::json line;
  {
    std::ifstream file(outcome.summary_path);
    const nlohmann::json summary = nlohmann::json::parse(file);
    for (const char* part : {"device", "stage_seconds", "device_seconds", "cache"}) {
      if (summary.contains(part)) line[part] = summary[part];
    }
  }
  std::filesystem::remove_all(directory);
  const auto measured =
      static_cast<double>(examples - static_cast<std::int64_t>(num_batches) * rows);
  line["ex_s"] = std::round(measured / (end.wall - start->wall));
  line["cpu_us_ex"] = (end.cpu - start->cpu) / measured * 1e6;
  line["batches"] = num_batches;
  line["steps"] = measured / static_cast<double>(rows);
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace satrap::trainer

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("usage: trainer_step_bench CONFIG SECONDS [key.path=value ...]\n");
    return argc == 2 && argv[1] == std::string("--help") ? 0 : 2;
  }
  try {
    return satrap::trainer::run(argc, argv);
  } catch (const satrap::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
