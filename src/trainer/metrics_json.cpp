#include "src/trainer/metrics_json.h"

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

Json slices_json(const SlicedColumn& column, bool is_weighted) {
  Json slices = Json::array();
  for (const auto& [value, metrics] : column.slices) {
    Json& slice = slices.emplace_back(Json{{"value", value ? Json(*value) : Json()},
                                           {"examples", metrics.examples},
                                           {"auc", json_number(metrics.auc)},
                                           {"logloss", json_number(metrics.logloss)},
                                           {"ne", json_number(metrics.ne)},
                                           {"calibration", json_number(metrics.calibration)}});
    if (is_weighted) slice["weight"] = metrics.weight;
  }
  return slices;
}

}  // namespace

nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

nlohmann::ordered_json metrics_json(const Metrics& m) {
  return {{"loss", json_number(m.logloss)}, {"auc", json_number(m.auc)},
          {"ne", json_number(m.ne)},        {"calibration", json_number(m.calibration)},
          {"ap", json_number(m.ap)},        {"brier", json_number(m.brier)}};
}

nlohmann::ordered_json evaluation_json(const Evaluation& e) {
  Json json = {{"examples", e.examples},
               {"auc", json_number(e.auc)},
               {"logloss", json_number(e.logloss)},
               {"ne", json_number(e.ne)},
               {"calibration", json_number(e.calibration)},
               {"ap", json_number(e.ap)},
               {"brier", json_number(e.brier)}};
  if (e.weight) json["weight"] = *e.weight;
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
    json["slices"][column.name] = slices_json(column, e.weight.has_value());
  }
  for (const Evaluation& label : e.labels) json["labels"][label.label] = evaluation_json(label);
  return json;
}

nlohmann::ordered_json reliability_json(const Evaluation& e) {
  Json labels = Json::array();
  for (const Evaluation& label : e.labels.empty() ? std::vector{e} : e.labels) {
    Json columns = {{"label", label.label},
                    {"examples", Json::array()},
                    {"predicted", Json::array()},
                    {"positives", Json::array()}};
    for (const ReliabilityBin& bin : label.reliability) {
      columns["examples"].push_back(bin.examples);
      columns["predicted"].push_back(bin.predicted);
      columns["positives"].push_back(count(bin.positives));
      if (label.weight) columns["weight"].push_back(bin.weight);
    }
    labels.push_back(std::move(columns));
  }
  return labels;
}

}  // namespace satrap::trainer
