#include "checkpoint_format.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"

namespace satrap::trainer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json body_of(const Manifest& m) {
  Json json = {{"format", kFormat},
               {"version", m.version},
               {"created", m.created},
               {"step", m.step},
               {"epoch", m.position.epoch},
               {"batches", m.position.batches},
               {"next_row", m.position.next_row},
               {"examples", m.examples},
               {"nonfinite_steps", m.nonfinite_steps},
               {"metrics", m.metrics}};
  json["tables"] = Json::array();
  for (const auto& t : m.tables) {
    json["tables"].push_back({{"name", t.name},
                              {"file", t.file},
                              {"optimizer", t.optimizer},
                              {"dim", t.dim},
                              {"row_bytes", t.row_bytes},
                              {"rows", t.rows}});
  }
  json["dense"] = Json::array();
  for (const auto& t : m.dense) json["dense"].push_back({{"name", t.name}, {"shape", t.shape}});
  json["pending"] = Json::array();
  for (const auto& p : m.pending) {
    json["pending"].push_back({{"step", p.step},
                               {"read_version", p.read_version},
                               {"pooled", p.pooled},
                               {"mask", p.mask}});
  }
  json["files"] = Json::object();
  for (const auto& [name, f] : m.files) {
    json["files"][name] = {{"bytes", f.bytes}, {"xxh3", f.xxh3}};
  }
  return json;
}

Manifest parse(const Json& json) {
  Manifest m;
  m.version = json.at("version");
  m.created = json.at("created");
  m.step = json.at("step");
  m.position = {json.at("epoch"), json.at("batches"), json.at("next_row")};
  m.examples = json.at("examples");
  m.nonfinite_steps = json.at("nonfinite_steps");
  for (const auto& [name, value] : json.at("metrics").items()) {
    if (value.is_number()) m.metrics[name] = value;  // null: undefined then
  }
  for (const Json& t : json.at("tables")) {
    m.tables.push_back({t.at("name"), t.at("file"), t.at("optimizer"), t.at("dim"),
                        t.at("row_bytes"), t.at("rows")});
  }
  for (const Json& t : json.at("dense")) m.dense.push_back({t.at("name"), t.at("shape")});
  for (const Json& p : json.at("pending")) {
    m.pending.push_back({p.at("step"), p.at("read_version"), p.at("pooled"), p.at("mask")});
  }
  for (const auto& [name, f] : json.at("files").items()) {
    m.files[name] = {f.at("bytes"), f.at("xxh3")};
  }
  return m;
}

}  // namespace

std::int64_t Manifest::Tensor::size() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return size;
}

std::string Manifest::to_json() const {
  Json json = body_of(*this);
  json["checksum"] = to_hex(hash_bytes(json.dump()));
  return json.dump(1) + "\n";
}

Manifest Manifest::read(const std::string& directory) {
  const std::string path = directory + "/" + kManifestFile;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorCode::kCorrupt, concat(path, ": missing or unreadable"));
  try {
    Json json = Json::parse(text.str());
    if (json.at("format") != kFormat) {
      throw Error(ErrorCode::kCorrupt, concat(path, ": format ", json.at("format").dump(),
                                              ", this program reads format ", kFormat));
    }
    const std::string checksum = json.at("checksum");
    json.erase("checksum");
    if (checksum != to_hex(hash_bytes(json.dump()))) {
      throw Error(ErrorCode::kCorrupt, path + ": checksum does not match its content");
    }
    return parse(json);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, concat(path, ": not a manifest: ", error.what()));
  }
}

std::string optimizer_name(RowOptimizerType type) {
  switch (type) {
    case RowOptimizerType::kSgd:
      return "sgd";
    case RowOptimizerType::kAdagrad:
      return "adagrad";
    case RowOptimizerType::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case RowOptimizerType::kAdam:
      return "adam";
    case RowOptimizerType::kFtrl:
      return "ftrl";
  }
  return "unknown";
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:012}", step); }

std::string to_hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace satrap::trainer
