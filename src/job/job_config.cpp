#include "satrap/job/job_config.h"

#include <optional>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::job {

void EarlyStoppingConfig::visit(ConfigVisitor& v) {
  v.choice("metric", metric, kStoppingMetrics,
           "Metric of the evaluation data, for several labels of the first. auc, gauc (with "
           "data.group_by) and accuracy should rise, the others fall. auc and gauc are of losses "
           "bce, accuracy of softmax, logloss and ne of both, rmse and mae of mse. The default is "
           "auc for bce, rmse for mse and logloss for softmax.");
  v.field(
      "patience", patience,
      "End training after this many consecutive evaluations (train.eval_every) without a better "
      "value. A checkpoint is written at each better value, and the best one is kept besides the "
      "newest checkpoint.keep. 0: never.",
      {.min = 0});
  v.field("min_delta", min_delta,
          "A value is better only if it differs from the best by more than this.", {.min = 0});
}

void ExpectConfig::visit(ConfigVisitor& v) {
  v.field(
      "auc", auc,
      "[low, high]: a finished run whose last evaluation has an AUC outside of this, for several "
      "labels of the first, ends with an error and exit status 1, once everything is written. For "
      "a benchmark whose result is known. Empty: any.",
      {.min = 0, .max = 1});
  v.field(
      "min_examples", min_examples,
      "Expect it only of a run that has trained on at least this many examples: a run on a part "
      "of the data is not judged.",
      {.min = 0});
}

void TrainConfig::visit(ConfigVisitor& v) {
  v.choice(
      "mode", mode, kTrainModes,
      "sync: every lookup sees all earlier updates. hybrid: embeddings are trained "
      "asynchronously within the staleness bound, the dense network as in sync. async: no rank "
      "waits for another, and the dense parameters are on the shards too; for comparison.",
      {.resume = kOtherInput});
  v.field(
      "staleness", staleness,
      "Bound of hybrid: the lookups of step t see at least all updates of steps <= t-1-staleness; "
      "deterministic training sees exactly those up to the bound, and its default is 1. sync "
      "has 0.",
      {.min = 0, .max = 1024, .resume = kOtherInput});
  v.choice(
      "staleness_schedule", staleness_schedule, kStalenessSchedules,
      "constant: the bound is `staleness` from the first step. sqrt: that of step t is "
      "min(staleness, floor(staleness_factor * sqrt(t))): the first steps change rows most, and so "
      "they read newer ones. sync and async have no schedule.",
      {.resume = kOtherInput});
  v.field("staleness_factor", staleness_factor, "Factor of staleness_schedule sqrt.",
          {.min = 0.001, .max = 1, .resume = kOtherInput});
  v.field(
      "deterministic", deterministic,
      "The same command gives the same bits, also after a crash and --resume: the lookups of step "
      "t see exactly the updates of steps <= t-1-bound.",
      {.resume = kOtherInput});
  v.choice(
      "precision", precision, kPrecisions,
      "Precision of the dense network's matrix products; weights, sums and optimizer are fp32. "
      "bf16 rounds their operands. If libtorch computes them, it rounds their results too, as "
      "autocast does: on a CPU without AVX-512 BF16, and in model.engine graph. fp16 rounds both; "
      "it needs a GPU and model.engine graph. The loss is then multiplied by a scale, so that "
      "small gradients are not lost. The scale starts at 65536. A step whose gradient overflows "
      "updates nothing and halves it; 2000 finite steps in a row double it, up to 2^24. The "
      "skipped steps count apart from max_nonfinite_steps, unless the scale was 1. tf32 needs a "
      "GPU and takes the 10 leading bits of the operands. auto: the faster of fp32 and bf16 on "
      "this CPU (`satrap "
      "doctor` says which), fp32 if libtorch computes the network.");
  v.field(
      "start_from_average", start_from_average,
      "A new dense network begins with the mean label of the first batch as its prediction: the "
      "bias of each output starts at the log-odds, at the mean number, or at the log of a class's "
      "share. Not for types torchscript and python.");
  v.field("epochs", epochs, "Passes over the training data.", {.min = 1});
  v.field("max_steps", max_steps, "Stop after this many steps; 0: at the end of the data.",
          {.min = 0});
  v.field("threads", threads, "Compute threads. 0: one per CPU. Results do not depend on it.",
          {.min = 0, .max = 1024, .resume = kSameTraining});
  v.field("prefetch_batches", prefetch_batches, "Batches read and planned ahead of the lookups.",
          {.min = 1, .max = 1024});
  v.field(
      "max_nonfinite_steps", max_nonfinite_steps,
      "End the run after this many steps with a loss or gradient that is not finite. Such steps "
      "update nothing.",
      {.min = 1});
  v.field("metric_window", metric_window,
          "Number of latest examples over which training metrics are computed.",
          {.min = 1, .resume = kSameTraining});
  v.field("report_every", report_every,
          "How often progress is reported: '100 steps', '1 epoch', '10s', '1min', never. With a "
          "time, metrics.jsonl also has about 50 points over the run, for its curves.",
          {.resume = kSameTraining});
  v.field("eval_every", eval_every,
          "How often the evaluation data is scored during training, besides at the end: '1000 "
          "steps', '1 epoch' (after its last step), '10min', never.");
  v.field("metrics_at", metrics_at,
          "[5, 10]: with data.group_by an evaluation has ndcg@5, recall@5, ndcg@10 and recall@10: "
          "means "
          "over the groups with a positive, ranked by prediction, over all orders of equal ones.",
          {.min = 1, .max = 1000, .resume = kSameTraining});
  v.field(
      "slices", slices,
      "Columns of the evaluation data, such as [country]. An evaluation then has examples, AUC, "
      "logloss, NE and calibration of the rows with each of the 20 most frequent values of a "
      "column, and of the other rows together. A value with at most 1 in 4096 rows is among the "
      "others. The evaluation data are read from their files, not from data.cache.",
      {.resume = kSameTraining});
  v.field("tensorboard", tensorboard,
          "Also write every report and evaluation for TensorBoard, to tensorboard/ in run_dir.",
          {.resume = kSameTraining});
  v.section("early_stopping", early_stopping, "End training once evaluation stops improving.");
  v.section("expect", expect, "What the result of the run must be.", kSameTraining);
  v.section("warm_start", warm_start, "Start with what another run has learned.",
            impossible("it applies only to the start of a run"));
}

void WarmStartConfig::visit(ConfigVisitor& v) {
  v.field("from", from,
          "A checkpoint, or a run directory for its newest. The new run begins at step 0, with the "
          "first row of its data. Empty: no warm start.");
  v.field("tables", tables,
          "Tables whose rows are taken: names, or globs such as user_*. Other tables start empty.");
  v.field("dense", dense, "Take the dense network too; its layers must have the same shapes.");
  v.choice("optimizer_state", optimizer_state, kOptimizerStates,
           "keep: rows and network keep their optimizer's state; the optimizer must be the same. "
           "reset: only weights are taken.");
}

void ClusterOptions::visit(ConfigVisitor& v) {
  v.field("timeout", timeout,
          "How long a rank waits for other ranks or shards before it gives up with an error.");
  v.field("heartbeat", heartbeat, "A process that sends nothing for this long counts as hung.");
}

std::int64_t ClusterOptions::timeout_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(timeout));
}
std::int64_t ClusterOptions::heartbeat_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(heartbeat));
}

void CheckpointConfig::visit(ConfigVisitor& v) {
  v.field("every", every,
          "How often a checkpoint is written, besides at the end: '1000 steps', '1 epoch', "
          "'10min', never.");
  v.field("keep", keep, "Number of checkpoints kept.", {.min = 1});
  v.field("max_failures", max_failures,
          "The job ends when this many checkpoints in a row cannot be written; until then each is "
          "a warning, and the next one is tried when it is due.",
          {.min = 1});
  v.field("max_unsaved", max_unsaved,
          "The job also ends at a failure if none could be written for this long: '2h', never.");
}

std::optional<double> CheckpointConfig::max_unsaved_seconds() const {
  return max_unsaved == "never" ? std::nullopt : std::optional(parse_duration(max_unsaved));
}

void JobConfig::visit(ConfigVisitor& v) {
  v.field("run_dir", run_dir,
          "Directory for everything the run writes, or its URL in a store: s3://bucket/prefix, "
          "hdfs://namenode:9870/path; the run then keeps copies of what it writes in the folder "
          "SATRAP_SCRATCH of the environment. Empty: runs/ and the name of the file, without "
          ".yaml; if that holds a run, with -2, -3 and so on, unless a launcher or a scheduler has "
          "started the job.",
          {.resume = kSameTraining});
  v.field(
      "folder", folder,
      "Folder in which relative paths of this file begin. Empty: the folder of the file. Relative "
      "paths on the command line begin in the working directory.",
      {.resume = kSameTraining});
  v.choice(
      "device", device, kJobDevices,
      "Where the job trains. cpu: on the CPU. cuda: on a GPU, one for each rank of a node. The "
      "dense network is computed there, unless model.engine says otherwise. Rows are trained there "
      "too, in a "
      "cache of 50% of the free memory or of embedding.cache.memory. With 0, or where a job cannot "
      "have a cache, rows stay in the host's tables or on the shards. auto: cuda if there is a GPU "
      "and the job can run on it, else cpu; a job that has a GPU and does not use it says why when "
      "it starts. Without a cache auto is cuda only for networks with a layer of at least 256 "
      "outputs. gpu: as cuda.");
  v.field("seed", seed, "Seed of initial values and shuffling.",
          {.min = 0,
           .resume = impossible("untrained rows and the order of shuffled data depend on it")});
  v.section("data", data, "Training and evaluation data.", kOtherInput);
  v.named("tables", tables, "Embedding tables; `default` applies to those not named.");
  v.named("features", features, "Categorical features; `default` applies to those not named.");
  v.section("model", model, "The dense network.",
            impossible("the checkpoint's parameters belong to that network"));
  v.section("dense_optimizer", dense_optimizer, "Optimizer of the dense network.");
  v.section("embedding", embedding, "The embedding rows.");
  v.section("train", train, "How to train.");
  v.section("checkpoint", checkpoint, "Checkpoints.", kSameTraining);
  v.section("cluster", cluster, "Several processes.", kSameTraining);
}

std::string JobConfig::why_no_cache() const {
  if (train.is_async()) {
    return "async has no cache, because its shards update each row when a gradient arrives";
  }
  for (const auto& [name, table] : tables) {
    if (table.capacity_rows == 0 && table.ttl_steps == 0 && table.admit_after <= 1) continue;
    return concat("table '", name,
                  "' has capacity_rows, ttl_steps or admit_after, and would take rows in a cache "
                  "for unused");
  }
  if (embedding.wire != FloatType::kFp32) {
    return concat(
        "whole rows travel to and from a cache as they are stored, and embedding.wire is ",
        name_of(embedding.wire));
  }
  return "";
}

}  // namespace satrap::job
