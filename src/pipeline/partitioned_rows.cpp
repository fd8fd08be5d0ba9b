#include "src/pipeline/partitioned_rows.h"

#include <algorithm>
#include <optional>

#include "satrap/core/error.h"
#include "satrap/embedding/reduce_gradients.h"
#include "src/pipeline/as_received.h"
#include "src/pipeline/parts_of_ranks.h"

namespace satrap::pipeline {

// ------------------------------------------------------------------------------ rows of a batch

class PartitionedRows::Rows final : public embedding::PlannedRows {
 public:
  explicit Rows(PartitionedRows& access)
      : PlannedRows(access.layout_, access.pool_),
        access_(access),
        owned_(access.owned_.make_rows_by_key()),
        keys_(access.owners_, *access.keys_) {}

  void make_plan(embedding::Planner& planner, const data::Batch& batch, std::int64_t) override {
    is_read_ = false;
    planner.plan(batch, plan_);
  }

  void request(std::int64_t step, std::int64_t) override {
    keys_.exchange(plan_.keys, plan_.num_examples, access_.cluster_.deadline());
    owned_->request(step, keys_.lent(), keys_.num_examples());
  }

  std::optional<std::int64_t> wait() override {
    owned_->wait();
    return std::nullopt;
  }

  void read(embedding::Planner& planner, const data::Batch& batch) override {
    if (!reader_) reader_ = access_.uncached_.make_rows();
    reader_->read(planner, batch);
    is_read_ = true;
  }

  void pool(const data::Batch& batch,
            const FloatMatrix& pooled,
            const FloatMatrix& mask) const override {
    if (is_read_) return reader_->pool(batch, pooled, mask);
    receive_weights();
    PlannedRows::pool(batch, pooled, mask);
  }

  void wait_taken() override {}

 protected:
  Addresses addresses() const override { return {access_.addresses_, 0}; }
  void apply(const float* grad_pooled, std::int64_t step) override;
  void skip(std::int64_t step) override { owned_->skip(step); }

 private:
  void receive_weights() const;
  float* vector_of(std::size_t u) const;

  PartitionedRows& access_;
  const std::unique_ptr<embedding::RowsByKey> owned_;  // what the ranks ask of this one
  KeyExchange keys_;
  bool is_read_ = false;               // else planned
  std::unique_ptr<BatchRows> reader_;  // past the caches
};

float* PartitionedRows::Rows::vector_of(std::size_t u) const {
  Vectors& vectors = access_.vectors_[access_.owners_.group_of(plan_.keys[u])];
  return vectors.asked.data() + keys_.place_of(u) * vectors.width;
}

void PartitionedRows::Rows::receive_weights() const {
  std::vector<float*> lent;
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    vectors.lent.resize(static_cast<std::size_t>(sum_of(keys_.lent_to(g)) * vectors.width));
    vectors.asked.resize(static_cast<std::size_t>(sum_of(keys_.asked_of(g)) * vectors.width));
    lent.push_back(vectors.lent.data());
  }
  owned_->gather(lent);
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    access_.exchange(g, vectors.lent, keys_.lent_to(g), vectors.asked, keys_.asked_of(g));
  }
  access_.addresses_.resize(plan_.keys.size());
  for (std::size_t u = 0; u < plan_.keys.size(); ++u) {
    access_.addresses_[u] = reinterpret_cast<const std::byte*>(vector_of(u));
  }
}

void PartitionedRows::Rows::apply(const float* grad_pooled, std::int64_t step) {
  std::vector<const float*> lent;
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    // With padding of zeros.
    vectors.asked.assign(static_cast<std::size_t>(sum_of(keys_.asked_of(g)) * vectors.width), 0.0F);
    vectors.lent.resize(static_cast<std::size_t>(sum_of(keys_.lent_to(g)) * vectors.width));
    lent.push_back(vectors.lent.data());
  }
  access_.gradients_.resize(plan_.keys.size());
  for (std::size_t u = 0; u < plan_.keys.size(); ++u) access_.gradients_[u] = vector_of(u);
  embedding::reduce_gradients(plan_, access_.dims_, grad_pooled, access_.gradients_,
                              access_.scratch_, pool_);
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    access_.exchange(g, vectors.asked, keys_.asked_of(g), vectors.lent, keys_.lent_to(g));
  }
  owned_->update(lent, step);
}

// ----------------------------------------------------------------------------------- all batches

PartitionedRows::PartitionedRows(const std::vector<job::FeatureSpec>& features,
                                 const std::vector<table::TableSpec>& tables,
                                 embedding::CachedRows& owned,
                                 embedding::RowAccess& uncached,
                                 Cluster& cluster,
                                 ThreadPool& pool,
                                 collective::DeviceCommunicator* device_ranks)
    : layout_(features, as_received(tables)),
      owned_(owned),
      uncached_(uncached),
      cluster_(cluster),
      pool_(pool),
      device_ranks_(device_ranks),
      owners_(owned.groups(), tables.size(), cluster.size()),
      keys_(cluster.make_communicator("cache-keys")),
      rows_(cluster.make_communicator("cache-rows")),
      saves_(cluster.make_communicator("cache-save")),
      planner_(layout_, pool),
      keys_ahead_(owners_, *keys_) {
  SATRAP_CHECK(cluster.size() <= kMaxRanks, cluster.size(), " ranks");
  for (const table::TableSpec& table : tables) dims_.push_back(table.dim);
  for (const embedding::RowGroup* const group : owned.groups()) {
    vectors_.push_back({.width = group->layout.padded_dim});
  }
}

PartitionedRows::~PartitionedRows() = default;

std::unique_ptr<embedding::BatchRows> PartitionedRows::make_rows() {
  if (device_ranks_ != nullptr) return make_rows_on_device();
  return std::make_unique<Rows>(*this);
}

void PartitionedRows::look_at(const data::Batch& batch, std::int64_t step) {
  if (!owned_.looks_ahead()) return;
  planner_.plan(batch, plan_ahead_);
  keys_ahead_.exchange(plan_ahead_.keys, plan_ahead_.num_examples, cluster_.deadline());
  owned_.look_at(keys_ahead_.lent(), keys_ahead_.num_examples(), step);
}

void PartitionedRows::stop() {
  keys_->close();
  rows_->close();
  saves_->close();
  if (device_ranks_ != nullptr) device_ranks_->close();
  owned_.stop();
}

/// All ranks call it for the groups in their order.
void PartitionedRows::exchange(std::size_t group,
                               std::span<const float> to,
                               std::span<const std::int64_t> to_counts,
                               std::span<float> from,
                               std::span<const std::int64_t> from_counts) {
  pipeline::exchange(*rows_, to, to_counts, from, from_counts, vectors_[group].width,
                     cluster_.deadline());
}

}  // namespace satrap::pipeline
