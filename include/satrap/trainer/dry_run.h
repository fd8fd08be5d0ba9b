#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/dataset.h"
#include "satrap/data/role.h"
#include "satrap/job/job_config.h"
#include "satrap/pipeline/model.h"

namespace satrap::trainer {

/// The first batch of some data.
struct FirstBatch {
  std::int64_t examples = 0, bad_rows = 0;
  struct Label {
    data::NamedLabelConfig config;
    double mean = 0.0;  // weighted; of 0 and 1 the share of positives
  };
  std::vector<Label> labels;
  std::int64_t ids = 0;
};

/// The data of a job, for the functions below: those of a topic without an end are the messages
/// that are there, so that nothing is waited for.
data::Dataset data_up_to_now(const job::JobConfig& config);

/// Reads the first batch of the training data, or of the evaluation data, as a run with this seed
/// does; transforms are fitted to the first rows of the training data only. Throws as open_batches
/// does.
FirstBatch read_first_batch(const data::Dataset& data, std::int64_t seed, data::Role role);

/// The memory that a run would need, and the new model's result on the first batch.
struct DryRun {
  struct Table {
    std::string name;
    std::int64_t dim = 0;
    std::int64_t row_bytes = 0;  // with optimizer state
    std::int64_t rows = 0;       // after an epoch: estimated unless all rows were looked at
  };
  std::vector<Table> tables;
  std::int64_t examples_seen = 0;   // from which the rows are estimated: the first ones
  std::int64_t examples_total = 0;  // of an epoch, about; 0: unknown, and rows are those seen
  std::int64_t dense_parameters = 0;
  std::string metric;  // logloss or rmse
  double value = 0.0;  // of the first label in the first batch
};

/// Builds the model in this process, on the CPU, and scores the first batch. Reads some more to see
/// how the tables grow. No step is taken and nothing is written. `make_network`: as in
/// TrainOptions. Throws as a run would.
DryRun dry_run(const job::JobConfig& config,
               const data::Dataset& data,
               const pipeline::MakeNetwork& make_network = {});

}  // namespace satrap::trainer
