#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "tests/embedding/random_bags.h"

namespace satrap::embedding {

/// Tables, features that read them, and a batch for every step.
struct RandomJob {
  std::vector<table::TableSpec> tables;
  std::vector<job::FeatureSpec> features;
  std::vector<data::Batch> batches;
};

inline constexpr int kNumRandomJobs = 4;

namespace random_job_detail {

template <class T>
void shuffle(std::vector<T>& values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

/// Changes all that may differ between the tables of a group.
inline void differ(table::TableSpec& spec, std::mt19937_64& random) {
  const auto up_to = [&](std::uint64_t n) { return static_cast<float>(random() % (n + 1)); };
  spec.init.type = static_cast<table::InitType>(random() % 3);
  spec.init.scale = 0.01F * (1.0F + up_to(9));
  spec.optimizer.lr = 0.01F * (1.0F + up_to(19));
  spec.optimizer.weight_decay = 0.01F * up_to(2);
  spec.optimizer.eps = 1e-8F * (1.0F + up_to(3));
  spec.optimizer.initial_accumulator = 0.1F * up_to(2);
  spec.optimizer.beta1 = 0.8F + 0.01F * up_to(9);
  spec.optimizer.beta2 = 0.98F + 0.001F * up_to(9);
  spec.optimizer.ftrl_l1 = 0.001F * up_to(5);
  spec.optimizer.ftrl_l2 = 0.1F * up_to(2);
  spec.schedule.warmup_steps = static_cast<std::int64_t>(random() % 4);
  spec.schedule.decay = kRateDecays[random() % 4].value;
  spec.schedule.decay_steps = 5;
}

/// Puts `count` times the same id before the ids of the first bag of feature f.
inline void add_hot_ids(data::Batch& batch, std::size_t f, std::int64_t count) {
  const auto first = f * static_cast<std::size_t>(batch.num_examples);
  const std::int64_t at = batch.offsets[first];
  batch.ids.insert(batch.ids.begin() + at, static_cast<std::size_t>(count), 1);
  if (!batch.id_weights.empty()) {
    batch.id_weights.insert(batch.id_weights.begin() + at, static_cast<std::size_t>(count), 0.5F);
  }
  for (std::size_t i = first + 1; i < batch.offsets.size(); ++i) batch.offsets[i] += count;
}

}  // namespace random_job_detail

/// Tables of every optimizer and every type of weights; all jobs together have each of these in
/// dims 4, 5, 16 and 64. Some tables are equal in these three and in nothing else. One or two
/// features read each table. Batches have empty bags, weights or none; one has no examples, and one
/// a key that occurs more than 64 * 64 times.
inline RandomJob random_job(int number) {
  namespace detail = random_job_detail;
  constexpr std::int64_t kDims[] = {4, 5, 16, 64};
  std::mt19937_64 random(static_cast<std::uint64_t>(number) + 100);
  RandomJob job;
  const auto add_tables = [&](std::size_t count, int dim, int weights, int optimizer) {
    table::TableSpec spec =
        table_spec(0, kDims[dim % 4], static_cast<RowOptimizerType>(optimizer % 5));
    spec.weights = static_cast<FloatType>(weights % 3);
    job.tables.insert(job.tables.end(), count, spec);
  };
  for (int optimizer = 0; optimizer < 5; ++optimizer) {
    for (int weights = 0; weights < 3; ++weights) {
      add_tables(1 + random() % 2, optimizer + number, weights, optimizer);
    }
    add_tables(1, optimizer + number + 1, number, optimizer);  // differs in dim alone
  }
  detail::shuffle(job.tables, random);
  for (std::size_t t = 0; t < job.tables.size(); ++t) {
    job.tables[t].id = static_cast<TableId>(t);
    job.tables[t].name = concat("t", t);
    detail::differ(job.tables[t], random);
    for (std::uint64_t n = 1 + random() % 2; n > 0; --n) {
      const auto pooling = static_cast<Pooling>(random() % 4);
      const std::uint64_t length = pooling == Pooling::kSequence ? 1 + random() % 4 : 1;
      job.features.push_back(
          feature(static_cast<int>(t), pooling, static_cast<std::int64_t>(length)));
    }
  }
  detail::shuffle(job.features, random);
  std::size_t hot = 0;
  while (job.features[hot].pooling == Pooling::kSequence) ++hot;
  for (const std::int64_t num_examples : {9, 40, 0, 17}) {
    const bool weighted = random() % 2 == 0;
    job.batches.push_back(
        random_batch(random, std::ssize(job.features), num_examples, 5, 100, weighted));
    if (num_examples == 40) detail::add_hot_ids(job.batches.back(), hot, 64 * 64 + 100);
  }
  return job;
}

}  // namespace satrap::embedding
