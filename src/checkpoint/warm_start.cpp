#include "satrap/checkpoint/warm_start.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/checkpoint/continuation.h"
#include "satrap/core/error.h"
#include "satrap/core/log.h"
#include "satrap/table/table.h"

namespace satrap::checkpoint {
namespace {

std::string names_of(const std::vector<Manifest::Table>& tables) {
  std::vector<std::string> names;
  for (const Manifest::Table& table : tables) names.push_back(table.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Tensors of the optimizer come after the network's, and are named after it ("adam.exp_avg").
bool is_optimizer_state(const std::string& tensor) {
  constexpr std::string_view kPrefixes[] = {"sgd.", "adagrad.", "adam.", "adamw."};
  return std::ranges::any_of(kPrefixes, [&](std::string_view p) { return tensor.starts_with(p); });
}

std::string describe(const std::string& name, const std::vector<std::int64_t>& shape) {
  return fmt::format("'{}' [{}]", name, fmt::join(shape, ", "));
}

}  // namespace

WarmStart::WarmStart(const job::JobConfig& config,
                     std::string checkpoint,
                     const pipeline::Model& model)
    : config_(config.train.warm_start),
      checkpoint_(std::move(checkpoint)),
      manifest_(Manifest::read(checkpoint_)),
      specs_(model.specs.tables) {
  choose_tables();
  if (config_.dense) {
    check_labels(checkpoint_, config, "; train.warm_start.dense: false takes only rows");
  }
}

void WarmStart::choose_tables() {
  std::string problems;
  std::set<std::string> chosen;
  for (const std::string& pattern : config_.tables) {
    bool found = false;
    for (const Manifest::Table& saved : manifest_.tables) {
      if (fnmatch(pattern.c_str(), saved.name.c_str(), 0) != 0) continue;
      found = true;
      if (chosen.insert(saved.name).second) check_table(saved, problems);
    }
    if (!found) {
      problems += concat("train.warm_start.tables: '", pattern, "' is not a table of ", checkpoint_,
                         ", which has: ", names_of(manifest_.tables), "\n");
    }
  }
  if (!problems.empty()) throw Error(ErrorCode::kInvalidConfig, problems);
}

void WarmStart::check_table(const Manifest::Table& saved, std::string& problems) {
  const auto refuse = [&](const auto&... what) {
    problems +=
        concat("train.warm_start.tables: '", saved.name, "' of ", checkpoint_, " ", what..., "\n");
  };
  const auto spec = std::ranges::find(specs_, saved.name, &table::TableSpec::name);
  if (spec == specs_.end()) {
    std::vector<std::string> own;
    for (const table::TableSpec& table : specs_) own.push_back(table.name);
    return refuse("is not a table of the configuration, which has: ",
                  fmt::format("{}", fmt::join(own, ", ")));
  }
  const char* optimizer = name_of(spec->optimizer.type);
  if (saved.dim != spec->dim) {
    return refuse("has rows of ", saved.dim, " weights, that of the configuration of ", spec->dim);
  }
  if (saved.weights != name_of(spec->weights)) {
    return refuse("has weights in ", saved.weights, ", that of the configuration in ",
                  name_of(spec->weights));
  }
  const bool same_state =
      saved.optimizer == optimizer && saved.row_bytes == manifest_.row_bytes(spec->layout());
  if (config_.keeps_state() && !same_state) {
    return refuse("was trained with optimizer ", saved.optimizer, ", that of the configuration is ",
                  optimizer, "; optimizer_state: reset takes only the weights");
  }
  tables_.push_back(saved.name);
  for (table::RowFile& file :
       row_files(checkpoint_, manifest_, saved, static_cast<std::int32_t>(spec->id))) {
    file.weights_only = !config_.keeps_state();
    rows_.files.push_back(std::move(file));
  }
}

void WarmStart::load(pipeline::Model& model) const {
  model.tables->begin(rows_);
  if (config_.dense) load_dense(*model.network);
  std::int64_t rows = 0;
  for (const Manifest::Table& table : manifest_.tables) {
    if (std::ranges::count(tables_, table.name) > 0) rows += table.rows;
  }
  log_info("warm start from {} (step {}): {} rows of {} of its {} tables{}, optimizer state {}",
           checkpoint_, manifest_.step, rows, tables_.size(), manifest_.tables.size(),
           config_.dense ? " and the dense network" : "", config_.keeps_state() ? "kept" : "reset");
}

void WarmStart::load_dense(dense::Savable& network) const {
  const std::vector<float> values = read_dense(checkpoint_, manifest_);
  const auto is_wanted = [&](const std::string& name) {
    if (name == dense::Savable::kLossScaleTensor) return false;  // begins anew
    return config_.keeps_state() || !is_optimizer_state(name);
  };
  struct Saved {
    const Manifest::Tensor& tensor;
    std::span<const float> values;
  };
  std::vector<Saved> saved;
  std::span<const float> rest = values;
  for (const Manifest::Tensor& tensor : manifest_.dense) {
    const auto size = static_cast<std::size_t>(tensor.size());
    if (is_wanted(tensor.name)) saved.push_back({tensor, rest.first(size)});
    rest = rest.subspan(size);
  }
  dense::Savable::State state = network.save();
  std::vector<dense::Savable::NamedTensor*> wanted;
  for (dense::Savable::NamedTensor& tensor : state) {
    if (is_wanted(tensor.name)) wanted.push_back(&tensor);
  }
  for (std::size_t i = 0; i < std::max(saved.size(), wanted.size()); ++i) {
    const std::string old =
        i < saved.size() ? describe(saved[i].tensor.name, saved[i].tensor.shape) : "nothing more";
    const std::string now =
        i < wanted.size() ? describe(wanted[i]->name, wanted[i]->shape) : "nothing more";
    if (old != now) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat("train.warm_start.dense: ", checkpoint_, " has ", old,
                         " where the configured network has ", now, "; false takes only rows"));
    }
    std::ranges::copy(saved[i].values, wanted[i]->values.begin());
  }
  network.load(state);
}

}  // namespace satrap::checkpoint
