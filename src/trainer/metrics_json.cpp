#include "satrap/trainer/metrics_json.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

/// A sum of weights of 1 is a whole number.
Json count(double value) {
  const bool is_whole = value == std::floor(value) && std::fabs(value) < 0x1p53;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json slices_json(const SlicedColumn& column, job::Loss loss, bool is_weighted) {
  Json slices = Json::array();
  for (const auto& [value, metrics] : column.slices) {
    Json& slice = slices.emplace_back(
        Json{{"value", value ? Json(*value) : Json()}, {"examples", metrics.examples}});
    for (const auto& [name, member] : slice_metrics_of(loss)) {
      slice[std::string(name)] = json_number(metrics.*member);
    }
    if (is_weighted) slice["weight"] = metrics.weight;
  }
  return slices;
}

}  // namespace

nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

nlohmann::ordered_json metrics_json(const Metrics& metrics, job::Loss loss) {
  Json json = {{"loss", json_number(metrics.loss)}};
  for (const auto& [name, member] : metrics_of(loss)) {
    if (name != "logloss") json[std::string(name)] = json_number(metrics.*member);
  }
  return json;
}

nlohmann::ordered_json evaluation_json(const Evaluation& e) {
  Json json = {{"examples", e.examples}};
  for (const auto& [name, member] : metrics_of(e.loss_of_label)) {
    json[std::string(name)] = json_number(e.*member);
  }
  if (e.is_weighted) json["weight"] = e.weight;
  if (e.grouped) {
    json["gauc"] = json_number(e.grouped->auc);
    json["groups"] = e.grouped->num_groups;
  }
  for (const RankingAt& at : e.ranking.at) {
    json[fmt::format("ndcg@{}", at.k)] = json_number(at.ndcg);
    json[fmt::format("recall@{}", at.k)] = json_number(at.recall);
  }
  if (!e.ranking.at.empty()) json["positive_groups"] = e.ranking.num_groups;
  for (const SlicedColumn& column : e.slices) {
    json["slices"][column.name] = slices_json(column, e.loss_of_label, e.is_weighted);
  }
  for (const Evaluation& label : e.labels) json["labels"][label.label] = evaluation_json(label);
  return json;
}

nlohmann::ordered_json reliability_json(const Evaluation& e) {
  Json labels = Json::array();
  for (const Evaluation& label : e.labels.empty() ? std::vector{e} : e.labels) {
    if (label.loss_of_label != job::Loss::kBce) continue;
    Json columns = {{"label", label.label},
                    {"examples", Json::array()},
                    {"predicted", Json::array()},
                    {"positives", Json::array()}};
    for (const ReliabilityBin& bin : label.reliability) {
      columns["examples"].push_back(bin.examples);
      columns["predicted"].push_back(bin.predicted);
      columns["positives"].push_back(count(bin.positives));
      if (label.is_weighted) columns["weight"].push_back(bin.weight);
    }
    labels.push_back(std::move(columns));
  }
  return labels;
}

}  // namespace satrap::trainer
