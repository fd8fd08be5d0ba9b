#include "src/pipeline/partitioned_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <type_traits>

#include "satrap/core/error.h"
#include "satrap/embedding/reduce_gradients.h"
#include "satrap/table/sharding.h"
#include "src/pipeline/as_received.h"

namespace satrap::pipeline {
namespace {

std::size_t sum(std::span<const std::int64_t> counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

/// Divides `values` into consecutive parts of counts[i] * width elements, as bytes.
template <class Bytes, class T>
std::vector<Bytes> parts_of(std::span<T> values,
                            std::span<const std::int64_t> counts,
                            std::int64_t width) {
  std::vector<Bytes> parts;
  for (const std::int64_t count : counts) {
    const auto size = static_cast<std::size_t>(count * width);
    if constexpr (std::is_const_v<T>) {
      parts.push_back(std::as_bytes(values.first(size)));
    } else {
      parts.push_back(std::as_writable_bytes(values.first(size)));
    }
    values = values.subspan(size);
  }
  return parts;
}

using In = std::span<std::byte>;
using Out = std::span<const std::byte>;

}  // namespace

// ------------------------------------------------------------------------------ rows of a batch

class PartitionedRows::Rows final : public embedding::PlannedRows {
 public:
  explicit Rows(PartitionedRows& access)
      : PlannedRows(access.layout_, access.pool_),
        access_(access),
        owned_(access.owned_.make_rows_by_key()),
        asked_(access.vectors_.size(), access.num_ranks()),
        lent_(access.vectors_.size(), access.num_ranks()),
        keys_of_group_(access.vectors_.size()) {}

  void make_plan(embedding::Planner& planner, const data::Batch& batch, std::int64_t) override {
    is_read_ = false;
    planner.plan(batch, plan_);
  }

  void request(std::int64_t step, std::int64_t) override {
    divide_keys();
    const std::int64_t num_examples = exchange_counts();
    exchange_keys();
    owned_->request(step, keys_of_group_, num_examples);
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
  std::size_t group_of(Key key) const {
    return access_.group_of_table_[static_cast<std::size_t>(table_of(key))];
  }
  void divide_keys();
  std::int64_t exchange_counts();
  void exchange_keys();
  void receive_weights() const;
  float* vector_of(std::size_t u) const;

  PartitionedRows& access_;
  const std::unique_ptr<embedding::RowsByKey> owned_;  // what the ranks ask of this one
  Counts asked_, lent_;                                // of other ranks, to them
  std::vector<std::int64_t> place_of_;       // [num_unique] in the memory of its group, by owner
  std::vector<Key> asked_keys_, lent_keys_;  // by rank and group
  std::vector<std::int64_t> counts_to_, counts_from_;
  std::vector<std::vector<Key>> keys_of_group_;  // lent, by rank
  bool is_read_ = false;                         // else planned
  std::unique_ptr<BatchRows> reader_;            // past the caches
};

/// Keys in the order in which they are sent, and the places where their vectors will be.
void PartitionedRows::Rows::divide_keys() {
  const std::size_t num_groups = access_.vectors_.size(), num_ranks = access_.num_ranks();
  const auto owner_of = [&](Key key) {
    return static_cast<std::size_t>(table::shard_of(key, access_.cluster_.size()));
  };
  asked_.clear();
  for (const Key key : plan_.keys) ++asked_.at(group_of(key), owner_of(key));

  Counts next_place(num_groups, num_ranks), next_key(num_groups, num_ranks);
  std::int64_t key_begin = 0;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    for (std::size_t g = 0; g < num_groups; ++g) {
      next_key.at(g, r) = key_begin;
      key_begin += asked_.at(g, r);
      if (r > 0) next_place.at(g, r) = next_place.at(g, r - 1) + asked_.at(g, r - 1);
    }
  }
  asked_keys_.resize(plan_.keys.size());
  place_of_.resize(plan_.keys.size());
  for (std::size_t u = 0; u < plan_.keys.size(); ++u) {
    const Key key = plan_.keys[u];
    const std::size_t g = group_of(key), r = owner_of(key);
    place_of_[u] = next_place.at(g, r)++;
    asked_keys_[static_cast<std::size_t>(next_key.at(g, r)++)] = key;
  }
}

/// Returns the number of examples of all ranks.
std::int64_t PartitionedRows::Rows::exchange_counts() {
  const std::size_t num_groups = access_.vectors_.size(), num_ranks = access_.num_ranks();
  const std::vector<std::int64_t> sizes(num_ranks, 1);
  const auto line = static_cast<std::int64_t>(num_groups + 1);
  counts_to_.clear();
  for (std::size_t r = 0; r < num_ranks; ++r) {
    counts_to_.push_back(plan_.num_examples);
    for (std::size_t g = 0; g < num_groups; ++g) counts_to_.push_back(asked_.at(g, r));
  }
  counts_from_.resize(counts_to_.size());
  access_.keys_->all_to_all(parts_of<Out>(std::span<const std::int64_t>(counts_to_), sizes, line),
                            parts_of<In>(std::span<std::int64_t>(counts_from_), sizes, line),
                            access_.cluster_.deadline());
  std::int64_t num_examples = 0;
  for (std::size_t r = 0; r < num_ranks; ++r) {
    const std::int64_t* const theirs = counts_from_.data() + r * (num_groups + 1);
    num_examples += theirs[0];
    for (std::size_t g = 0; g < num_groups; ++g) lent_.at(g, r) = theirs[g + 1];
  }
  return num_examples;
}

void PartitionedRows::Rows::exchange_keys() {
  const std::size_t num_groups = access_.vectors_.size(), num_ranks = access_.num_ranks();
  std::vector<std::int64_t> to(num_ranks), from(num_ranks);
  for (std::size_t g = 0; g < num_groups; ++g) {
    for (std::size_t r = 0; r < num_ranks; ++r) {
      to[r] += asked_.at(g, r);
      from[r] += lent_.at(g, r);
    }
  }
  lent_keys_.resize(sum(from));
  access_.keys_->all_to_all(parts_of<Out>(std::span<const Key>(asked_keys_), to, 1),
                            parts_of<In>(std::span<Key>(lent_keys_), from, 1),
                            access_.cluster_.deadline());
  for (std::vector<Key>& keys : keys_of_group_) keys.clear();
  auto next = lent_keys_.begin();
  for (std::size_t r = 0; r < num_ranks; ++r) {
    for (std::size_t g = 0; g < num_groups; ++g) {
      const auto end = next + lent_.at(g, r);
      keys_of_group_[g].insert(keys_of_group_[g].end(), next, end);
      next = end;
    }
  }
}

float* PartitionedRows::Rows::vector_of(std::size_t u) const {
  Vectors& vectors = access_.vectors_[group_of(plan_.keys[u])];
  return vectors.asked.data() + place_of_[u] * vectors.width;
}

void PartitionedRows::Rows::receive_weights() const {
  std::vector<float*> lent;
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    vectors.lent.resize(sum(lent_.of(g)) * static_cast<std::size_t>(vectors.width));
    vectors.asked.resize(sum(asked_.of(g)) * static_cast<std::size_t>(vectors.width));
    lent.push_back(vectors.lent.data());
  }
  owned_->gather(lent);
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    access_.exchange(g, vectors.lent, lent_.of(g), vectors.asked, asked_.of(g));
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
    vectors.asked.assign(sum(asked_.of(g)) * static_cast<std::size_t>(vectors.width), 0.0F);
    vectors.lent.resize(sum(lent_.of(g)) * static_cast<std::size_t>(vectors.width));
    lent.push_back(vectors.lent.data());
  }
  access_.gradients_.resize(plan_.keys.size());
  for (std::size_t u = 0; u < plan_.keys.size(); ++u) access_.gradients_[u] = vector_of(u);
  embedding::reduce_gradients(plan_, access_.dims_, grad_pooled, access_.gradients_,
                              access_.scratch_, pool_);
  for (std::size_t g = 0; g < access_.vectors_.size(); ++g) {
    Vectors& vectors = access_.vectors_[g];
    access_.exchange(g, vectors.asked, asked_.of(g), vectors.lent, lent_.of(g));
  }
  owned_->update(lent, step);
}

// ----------------------------------------------------------------------------------- all batches

PartitionedRows::PartitionedRows(const std::vector<job::FeatureSpec>& features,
                                 const std::vector<table::TableSpec>& tables,
                                 embedding::CachedRows& owned,
                                 embedding::RowAccess& uncached,
                                 Cluster& cluster,
                                 ThreadPool& pool)
    : layout_(features, as_received(tables)),
      owned_(owned),
      uncached_(uncached),
      cluster_(cluster),
      pool_(pool),
      group_of_table_(tables.size()),
      keys_(cluster.make_communicator("cache-keys")),
      rows_(cluster.make_communicator("cache-rows")),
      saves_(cluster.make_communicator("cache-save")) {
  SATRAP_CHECK(cluster.size() <= kMaxRanks, cluster.size(), " ranks");
  for (const table::TableSpec& table : tables) dims_.push_back(table.dim);
  for (const embedding::RowGroup* const group : owned.groups()) {
    for (const TableId table : group->tables) {
      group_of_table_[static_cast<std::size_t>(table)] = vectors_.size();
    }
    vectors_.push_back({.width = group->layout.padded_dim});
  }
}

PartitionedRows::~PartitionedRows() = default;

std::unique_ptr<embedding::BatchRows> PartitionedRows::make_rows() {
  return std::make_unique<Rows>(*this);
}

void PartitionedRows::stop() {
  keys_->close();
  rows_->close();
  saves_->close();
  owned_.stop();
}

/// All ranks call it for the groups in their order.
void PartitionedRows::exchange(std::size_t group,
                               std::span<const float> to,
                               std::span<const std::int64_t> to_counts,
                               std::span<float> from,
                               std::span<const std::int64_t> from_counts) {
  const std::int64_t width = vectors_[group].width;
  rows_->all_to_all(parts_of<Out>(to, to_counts, width), parts_of<In>(from, from_counts, width),
                    cluster_.deadline());
}

}  // namespace satrap::pipeline
