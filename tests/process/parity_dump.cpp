// Trains the cases of a job that pytorch_parity_test.py has written, and dumps the weights before
// and after. The script compares them with PyTorch's results for the same numbers.
//
//   parity_dump JOB.yaml      (input and output are in the job's folder)
//
// A job has `steps` batches of `rows` examples: files
// batch<step>.{labels,numeric,offsets,ids,weights}, raw, laid out as data::Batch;
// batch<step>.two_labels has the labels for cases with two. For every case, <case>.f32 holds the
// tensors that <case>.json lists.

#include <cstddef>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/thread_pool.h"
#include "satrap/data/batch.h"
#include "satrap/data/schema.h"
#include "satrap/dense/dense_network.h"
#include "satrap/embedding/table_rows.h"
#include "satrap/job/table_config.h"
#include "satrap/pipeline/pooled_batch.h"
#include "satrap/table/table.h"

namespace satrap {
namespace {

struct ParityFeature {
  std::string name;
  std::int64_t max_length = 0;
  void visit(ConfigVisitor& v) {
    v.field("name", name, "");
    v.field("max_length", max_length, "");
  }
};

struct ParityCase {
  std::string name;
  std::map<std::string, job::TableConfig> tables;
  std::map<std::string, job::FeatureConfig> features;
  job::ModelConfig model;
  job::DenseOptimizerConfig dense_optimizer;
  std::vector<double> label_weights = {1.0};
  void visit(ConfigVisitor& v) {
    v.field("name", name, "");
    v.named("tables", tables, "");
    v.named("features", features, "");
    v.section("model", model, "");
    v.section("dense_optimizer", dense_optimizer, "");
    v.field("label_weights", label_weights, "");
  }
};

struct ParityJob {
  std::int64_t steps = 0, rows = 0, num_numeric = 0, num_ids = 0, threads = 1, seed = 1;
  std::vector<ParityFeature> features;
  std::vector<ParityCase> cases;
  void visit(ConfigVisitor& v) {
    v.field("steps", steps, "");
    v.field("rows", rows, "");
    v.field("num_numeric", num_numeric, "");
    v.field("num_ids", num_ids, "");
    v.field("threads", threads, "");
    v.field("seed", seed, "");
    v.list("features", features, "");
    v.list("cases", cases, "");
  }
};

template <class T>
std::vector<T> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(ErrorCode::kIo, concat("cannot read ", path));
  const std::streamsize bytes = file.tellg();
  std::vector<T> values(static_cast<std::size_t>(bytes) / sizeof(T));
  file.seekg(0).read(reinterpret_cast<char*>(values.data()), bytes);
  return values;
}

struct ParityBatch : data::Batch {
  std::vector<float> two_labels;  // [num_examples, 2]
};

std::vector<ParityBatch> read_batches(const ParityJob& job, const std::string& folder) {
  std::vector<ParityBatch> batches;
  for (std::int64_t step = 1; step <= job.steps; ++step) {
    const std::string stem = concat(folder, "/batch", step);
    ParityBatch& batch = batches.emplace_back();
    batch.num_examples = job.rows;
    batch.num_features = std::ssize(job.features);
    batch.num_numeric = job.num_numeric;
    batch.labels = read_all<float>(stem + ".labels");
    batch.two_labels = read_all<float>(stem + ".two_labels");
    batch.numeric = read_all<float>(stem + ".numeric");
    batch.offsets = read_all<std::int64_t>(stem + ".offsets");
    batch.ids = read_all<std::uint64_t>(stem + ".ids");
    batch.id_weights = read_all<float>(stem + ".weights");
  }
  return batches;
}

/// Writes tensors one after the other to a file, and their list to another.
class Dump {
 public:
  explicit Dump(const std::string& stem) : stem_(stem), values_(stem + ".f32") {}

  void add(const std::string& name,
           const std::vector<std::int64_t>& shape,
           std::span<const float> values) {
    list_.push_back({{"name", name}, {"shape", shape}});
    values_.write(std::as_bytes(values));
  }
  void finish() {
    values_.finish();
    FileWriter list(stem_ + ".json");
    list.write(list_.dump());
    list.finish();
  }

 private:
  std::string stem_;
  FileWriter values_;
  nlohmann::json list_ = nlohmann::json::array();
};

class CaseRun {
 public:
  CaseRun(const ParityJob& job, const ParityCase& c, const std::string& folder)
      : job_(job),
        num_labels_(std::ssize(c.label_weights)),
        pool_(job.threads),
        dump_(folder + "/" + c.name) {
    std::vector<data::SchemaFeature> schema_features;
    for (const ParityFeature& f : job.features) {
      schema_features.push_back({.name = f.name, .max_length = f.max_length});
    }
    job::ResolvedSpecs specs = job::resolve_specs(c.tables, c.features, schema_features,
                                                  job::needs_first_order(c.model.type) ? 1 : 0);
    const auto seed = static_cast<std::uint64_t>(job.seed);
    std::vector<table::Table*> pointers;
    for (const table::TableSpec& spec : specs.tables) {
      pointers.push_back(tables_.emplace_back(std::make_unique<table::Table>(spec, seed)).get());
    }
    dense::InputShape shape;
    shape.num_numeric = job.num_numeric;
    shape.label_weights.clear();
    for (const double weight : c.label_weights) {
      shape.label_weights.push_back(static_cast<float>(weight));
    }
    for (const job::FeatureSpec& f : specs.features) {
      const std::int64_t dim = specs.tables[static_cast<std::size_t>(f.table)].dim;
      if (f.pooling == Pooling::kSequence) {
        shape.sequences.push_back(
            {std::ssize(shape.field_widths), f.max_length, shape.num_numeric});
        shape.num_numeric += f.max_length;
      }
      for (std::int64_t i = 0; i < f.max_length; ++i) {
        shape.field_widths.push_back(dim);
        shape.field_names.push_back(f.name);
      }
    }
    access_ = std::make_unique<embedding::TableRows>(specs.features, pointers, pool_);
    planner_ = std::make_unique<embedding::Planner>(access_->layout(), pool_);
    rows_ = access_->make_rows();
    network_ = dense::DenseNetwork::create(c.model, c.dense_optimizer, dense::Precision::kFp32,
                                           shape, seed, pool_);
  }

  void run(const std::vector<ParityBatch>& batches) {
    dump_state("initial");
    std::vector<float> losses, norms;
    for (std::int64_t step = 1; step <= job_.steps; ++step) {
      const dense::DenseResult result = train(batches[static_cast<std::size_t>(step - 1)], step);
      SATRAP_CHECK(result.finite, "step ", step, " is not finite");
      losses.push_back(static_cast<float>(result.loss));
      norms.push_back(static_cast<float>(result.grad_norm));
    }
    dump_.add("losses", {job_.steps}, losses);
    dump_.add("norms", {job_.steps}, norms);
    dump_.add("probabilities", {job_.rows, num_labels_}, probabilities_);
    dump_state("final");
    dump_.finish();
  }

 private:
  dense::DenseResult train(const ParityBatch& batch, std::int64_t step) {
    rows_->make_plan(*planner_, batch, step);
    inputs_.begin(batch, access_->layout());
    rows_->pool(batch, inputs_.pooled(), inputs_.mask());
    const pipeline::PooledBatch& inputs = inputs_;
    const std::int64_t n = batch.num_examples;
    HostMatrix grad_pooled(n, inputs.pooled().cols);
    probabilities_.resize(static_cast<std::size_t>(n * num_labels_));
    const std::vector<float>& labels = num_labels_ == 1 ? batch.labels : batch.two_labels;
    network_->forward_backward(
        {n, inputs.numeric(), inputs.pooled(), host_matrix(std::span(labels), n, num_labels_),
         step},
        {host_matrix(std::span(probabilities_), n, num_labels_), grad_pooled.view()});
    const dense::DenseResult result = network_->finish();
    network_->apply(step);
    rows_->update(grad_pooled.view(), step);
    return result;
  }

  // Rows that training has not created yet are written with their initial values.
  void dump_state(const std::string& when) {
    for (const auto& tensor : network_->save()) {
      dump_.add(when + "/" + tensor.name, tensor.shape, tensor.values);
    }
    for (const auto& table : tables_) {
      std::vector<float> rows;
      std::vector<std::byte> initial(static_cast<std::size_t>(table->row_bytes()));
      for (std::int64_t id = 0; id < job_.num_ids; ++id) {
        const Key key = make_key(table->spec().id, static_cast<std::uint64_t>(id));
        table::RowPointer row = nullptr;
        table->find({&key, 1}, {&row, 1});
        if (row == nullptr) {
          row = initial.data();
          table->initialize_row(key, row);
        }
        rows.insert(rows.end(), table::weights_of(row), table::weights_of(row) + table->spec().dim);
      }
      dump_.add(when + "/table/" + table->spec().name, {job_.num_ids, table->spec().dim}, rows);
    }
  }

  const ParityJob& job_;
  const std::int64_t num_labels_;
  ThreadPool pool_;
  Dump dump_;
  std::vector<std::unique_ptr<table::Table>> tables_;
  std::unique_ptr<embedding::TableRows> access_;
  std::unique_ptr<embedding::Planner> planner_;
  std::unique_ptr<embedding::BatchRows> rows_;
  std::unique_ptr<dense::DenseNetwork> network_;
  std::vector<float> probabilities_;
  pipeline::PooledBatch inputs_;
};

void run_job(const std::string& path) {
  ParityJob job;
  load_config(job, path);
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::vector<ParityBatch> batches = read_batches(job, folder);
  for (const ParityCase& c : job.cases) CaseRun(job, c, folder).run(batches);
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  try {
    SATRAP_CHECK(argc == 2, "usage: parity_dump JOB.yaml");
    satrap::run_job(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
