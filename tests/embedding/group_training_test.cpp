// Tables trained on a device, group by group, end with the same bits as tables trained in place.

#include "tests/embedding/group_training.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "satrap/embedding/table_rows.h"
#include "satrap/kernels/sum_order.h"
#include "satrap/table/table_row_store.h"
#include "tests/embedding/random_job.h"

namespace satrap::embedding {
namespace {

constexpr std::uint64_t kJobSeed = 11;
constexpr std::int64_t kGap = 4;  // elements of a device's row that belong to no vector

/// The tables of a job and their rows.
struct Tables {
  explicit Tables(const std::vector<table::TableSpec>& specs) {
    for (const table::TableSpec& spec : specs) {
      owned.push_back(std::make_unique<table::Table>(spec, kJobSeed));
      pointers.push_back(owned.back().get());
    }
  }
  std::map<Key, std::vector<std::byte>> rows() const {
    std::map<Key, std::vector<std::byte>> rows;
    for (const auto& table : owned) {
      table->for_each_row([&](const std::byte* row) {
        RowHeader header;
        std::memcpy(&header, row, sizeof(header));
        rows[header.key] = {row, row + table->row_bytes()};
      });
    }
    return rows;
  }

  std::vector<std::unique_ptr<table::Table>> owned;
  std::vector<table::Table*> pointers;
};

/// Pooled output of a step and its gradient, in the host's memory.
struct HostStep {
  std::vector<float> pooled, grad;
};

std::vector<HostStep> train_in_place(
    const RandomJob& job,
    const Tables& tables,
    const std::function<void(const BatchPlan&)>& look_at = [](const BatchPlan&) {}) {
  ThreadPool pool(1);
  TableRows access(job.features, tables.pointers, pool);
  Planner planner(access.layout(), pool);
  const auto rows = access.make_rows();
  std::mt19937_64 random(1);
  std::vector<HostStep> steps;
  for (const data::Batch& batch : job.batches) {
    HostStep& step = steps.emplace_back();
    const std::int64_t number = std::ssize(steps);
    rows->make_plan(planner, batch, number);
    look_at(static_cast<const PlannedRows&>(*rows).plan());
    rows->request(number);
    rows->wait();
    const std::int64_t width = access.layout().output_width;
    HostMatrix pooled(batch.num_examples, width);
    HostMatrix mask(batch.num_examples, access.layout().mask_width);
    rows->pool(batch, pooled.view(), mask.view());
    step.pooled = pooled.values();
    for (std::size_t i = 0; i < step.pooled.size(); ++i) {
      step.grad.push_back(static_cast<float>(random() % 2001) * 0.001F - 1.0F);
    }
    rows->update(host_matrix(std::span(step.grad), batch.num_examples, width), number);
    rows->wait_taken();
  }
  return steps;
}

/// The same on the device under test.
class DeviceTraining {
 public:
  DeviceTraining(const RandomJob& job, const Tables& tables)
      : groups_(job.features, job.tables, kJobSeed),
        on_host_(job.features, job.tables),
        on_device_(job.features, job.tables, FeatureLayout::kDeviceColumns),
        store_(tables.pointers, pool_) {
    std::size_t max_ids = 0;
    for (const data::Batch& batch : job.batches) max_ids = std::max(max_ids, batch.ids.size());
    for (const TableGroup& group : groups_.groups()) {
      parts_.push_back(std::make_unique<GroupOnDevice>(
          group, on_device_, static_cast<std::int64_t>(max_ids), store_, pool_));
    }
  }

  void step(const data::Batch& batch, const HostStep& expected, std::int64_t number) {
    constexpr float kUntouched = 77.0F;
    const std::int64_t stride = on_device_.output_width + kGap;
    const auto size = static_cast<std::size_t>(batch.num_examples * stride);
    const testing::DeviceArray<float> out(std::vector<float>(size, kUntouched));
    for (const auto& part : parts_) part->lookup(batch, stride, number, out.data());
    // Every vector at its place in the layout, zeros after it, and nothing else.
    std::vector<float> pooled(size, kUntouched), grad(size, kUntouched);
    for_each_vector(batch.num_examples,
                    [&](std::int64_t from, std::int64_t to, std::int64_t dim, std::int64_t width) {
                      std::fill_n(pooled.begin() + to, width, 0.0F);
                      std::fill_n(grad.begin() + to, width, 0.0F);
                      std::copy_n(expected.pooled.begin() + from, dim, pooled.begin() + to);
                      std::copy_n(expected.grad.begin() + from, dim, grad.begin() + to);
                    });
    const std::vector<float> found = out.host();
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(pooled[i]))
          << found[i] << " instead of " << pooled[i] << " in column "
          << i % static_cast<std::size_t>(stride) << " of step " << number;
    }

    std::vector<TableStep> steps(num_tables(), TableStep{RowStep({}, 1.0, 1), 0, 0});
    groups_.fill_steps(number, steps);
    const testing::DeviceArray<TableStep> steps_on_device(steps);
    const testing::DeviceArray<float> grad_on_device(grad);
    for (const auto& part : parts_) part->update(grad_on_device.data(), steps_on_device.data());
  }

  void put_back(std::int64_t step) {
    for (const auto& part : parts_) part->put_back(step);
  }

 private:
  std::size_t num_tables() const {
    std::size_t count = 0;
    for (const TableGroup& group : groups_.groups()) count += group.tables.size();
    return count;
  }

  /// Calls visit(place on the host, place on the device, dim, width on the device).
  template <class Visit>
  void for_each_vector(std::int64_t num_examples, Visit&& visit) {
    for (std::size_t f = 0; f < on_host_.features.size(); ++f) {
      const PlacedFeature& host = on_host_.features[f];
      const PlacedFeature& device = on_device_.features[f];
      for (std::int64_t r = 0; r < num_examples; ++r) {
        for (std::int64_t e = 0; e < host.spec.max_length; ++e) {
          visit(r * on_host_.output_width + host.column + e * host.vector_width,
                r * (on_device_.output_width + kGap) + device.column + e * device.vector_width,
                host.dim, device.vector_width);
        }
      }
    }
  }

  ThreadPool pool_{1};
  const TableGroups groups_;
  const FeatureLayout on_host_, on_device_;
  table::TableRowStore store_;
  std::vector<std::unique_ptr<GroupOnDevice>> parts_;
};

TEST(RandomJobs, HaveEveryKindOfRowAndTablesThatShareAGroup) {
  std::set<std::tuple<std::int64_t, FloatType, RowOptimizerType>> kinds;
  for (int number = 0; number < kNumRandomJobs; ++number) {
    const RandomJob job = random_job(number);
    const TableGroups groups(job.features, job.tables, kJobSeed);
    EXPECT_LT(groups.groups().size(), job.tables.size());
    for (const TableGroup& group : groups.groups()) {
      kinds.emplace(group.layout.dim, group.layout.weight_type, group.optimizer);
    }
    const Tables tables(job.tables);
    std::int64_t most_occurrences = 0;
    train_in_place(job, tables, [&](const BatchPlan& plan) {
      for (std::int64_t u = 0; u < plan.num_unique(); ++u) {
        const auto i = static_cast<std::size_t>(u);
        most_occurrences = std::max(most_occurrences, plan.segments[i + 1] - plan.segments[i]);
      }
    });
    EXPECT_GT(most_occurrences, kSumChunk * kSumChunk);
  }
  EXPECT_EQ(kinds.size(), 4U * 3U * 5U);
}

class GroupTraining : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Jobs, GroupTraining, ::testing::Range(0, kNumRandomJobs));

TEST_P(GroupTraining, EndsWithTheBitsOfTablesThatAreWorkedOnInPlace) {
  SATRAP_NEEDS_DEVICE();
  const RandomJob job = random_job(GetParam());
  const Tables in_place(job.tables);
  const std::vector<HostStep> steps = train_in_place(job, in_place);
  const auto expected = in_place.rows();
  testing::for_each_schedule([&] {
    const Tables tables(job.tables);
    DeviceTraining training(job, tables);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      training.step(job.batches[s], steps[s], static_cast<std::int64_t>(s) + 1);
      if (::testing::Test::HasFatalFailure()) return;
    }
    training.put_back(std::ssize(steps));
    const auto rows = tables.rows();
    ASSERT_EQ(rows.size(), expected.size());
    for (const auto& [key, row] : expected) {
      const auto found = rows.find(key);
      ASSERT_NE(found, rows.end());
      ASSERT_TRUE(found->second == row)
          << "row of id " << id_of(key) << " of table " << static_cast<int>(table_of(key));
    }
  });
}

}  // namespace
}  // namespace satrap::embedding
