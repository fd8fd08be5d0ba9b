#include "metrics_json.h"

#include <cmath>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

nlohmann::ordered_json metrics_json(const Metrics& m) {
  return {{"loss", number(m.logloss)},
          {"auc", number(m.auc)},
          {"ne", number(m.ne)},
          {"calibration", number(m.calibration)}};
}

nlohmann::ordered_json evaluation_json(const Evaluation& e) {
  Json json = {{"examples", e.examples},
               {"auc", number(e.auc)},
               {"logloss", number(e.logloss)},
               {"ne", number(e.ne)},
               {"calibration", number(e.calibration)}};
  if (e.grouped) {
    json["gauc"] = number(e.grouped->auc);
    json["groups"] = e.grouped->num_groups;
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
      columns["positives"].push_back(bin.positives);
    }
    labels.push_back(std::move(columns));
  }
  return labels;
}

}  // namespace satrap::trainer
