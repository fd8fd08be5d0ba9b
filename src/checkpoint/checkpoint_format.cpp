#include "satrap/checkpoint/checkpoint_format.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "satrap/core/error.h"
#include "satrap/core/hash.h"
#include "satrap/core/json.h"
#include "src/checkpoint/manifest_check.h"

namespace satrap::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 3, kPackedFormat = 2;  // this program writes the first and reads both
constexpr int kMaxDepth = 8;                   // of JSON, which is written by recursion

Json body_of(const Manifest& m) {
  Json json = {{"format", kFormat},      {"version", m.version},
               {"created", m.created},   {"step", m.step},
               {"examples", m.examples}, {"nonfinite_steps", m.nonfinite_steps},
               {"metrics", m.metrics}};
  if (const auto& e = m.early_stopping) {
    json["early_stopping"] = {{"metric", e->metric},
                              {"last_step", e->last_step},
                              {"best_step", e->best_step},
                              {"best_value", e->best_value},
                              {"bad_evaluations", e->bad_evaluations}};
  }
  json["positions"] = Json::array();
  for (const data::DataPosition& p : m.positions) {
    json["positions"].push_back({{"epoch", p.epoch},
                                 {"batches", p.batches},
                                 {"next_row", p.next_row},
                                 {"rows_read", p.rows_read}});
  }
  if (!m.folder.empty()) json["folder"] = m.folder;
  if (m.ended_epochs > 0) json["ended_epochs"] = m.ended_epochs;
  if (m.first_eval_row >= 0) json["first_eval_row"] = m.first_eval_row;
  json["tables"] = Json::array();
  for (const auto& t : m.tables) {
    json["tables"].push_back({{"name", t.name},
                              {"files", t.files},
                              {"optimizer", t.optimizer},
                              {"weights", t.weights},
                              {"dim", t.dim},
                              {"row_bytes", t.row_bytes},
                              {"rows", t.rows}});
  }
  json["dense"] = Json::array();
  for (const auto& t : m.dense) json["dense"].push_back({{"name", t.name}, {"shape", t.shape}});
  json["files"] = Json::object();
  for (const auto& [name, f] : m.files) {
    json["files"][name] = {{"bytes", f.bytes}, {"xxh3", f.xxh3}};
  }
  return json;
}

std::vector<std::int64_t> shape_of(const Json& json) {
  std::vector<std::int64_t> shape;
  for (const Json& extent : json) shape.push_back(integer_of<std::int64_t>(extent));
  return shape;
}

Manifest parse(const Json& json) {
  Manifest m;
  m.has_packed_rows = json.at("format") == kPackedFormat;
  m.version = json.at("version");
  m.created = json.at("created");
  m.folder = json.value("folder", "");
  m.step = integer_at(json, "step");
  for (const Json& p : json.at("positions")) {
    m.positions.push_back({integer_at(p, "epoch"), integer_at(p, "batches"),
                           integer_at(p, "next_row"),
                           p.contains("rows_read") ? integer_at(p, "rows_read") : 0});
  }
  if (m.positions.empty()) json.at("positions").at(0);  // throws: there is a rank
  if (json.contains("ended_epochs")) m.ended_epochs = integer_at(json, "ended_epochs");
  if (json.contains("first_eval_row")) m.first_eval_row = integer_at(json, "first_eval_row");
  m.examples = integer_at(json, "examples");
  m.nonfinite_steps = integer_at(json, "nonfinite_steps");
  for (const auto& [name, value] : json.at("metrics").items()) {
    if (value.is_number()) m.metrics[name] = value;  // null: undefined then
  }
  if (json.contains("early_stopping")) {
    const Json& e = json["early_stopping"];
    m.early_stopping = {e.at("metric"), integer_at(e, "last_step"), integer_at(e, "best_step"),
                        e.at("best_value"), integer_at(e, "bad_evaluations")};
  }
  for (const Json& t : json.at("tables")) {
    m.tables.push_back({t.at("name"), t.at("optimizer"), t.value("weights", "fp32"), t.at("files"),
                        integer_at(t, "dim"), integer_at(t, "row_bytes"), integer_at(t, "rows")});
  }
  for (const Json& t : json.at("dense")) m.dense.push_back({t.at("name"), shape_of(t.at("shape"))});
  for (const auto& [name, f] : json.at("files").items()) {
    m.files[name] = {integer_at(f, "bytes"), f.at("xxh3")};
  }
  return m;
}

/// The depth of objects and arrays in each other; rather more for text that is no JSON.
int depth_of(std::string_view text) {
  int depth = 0, most = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_in_text = !is_in_text;
    if (is_in_text) {
      i += c == '\\' ? 1 : 0;
      continue;
    }
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    most = std::max(most, depth);
  }
  return most;
}

}  // namespace

std::int64_t Manifest::Tensor::size() const {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  return size;
}

RowLayout Manifest::Table::layout() const {
  const auto number_of = [&](const auto& names, const std::string& wanted, auto name_of) {
    const auto found = std::ranges::find(names, wanted, name_of);
    if (found == std::end(names)) {
      throw Error(ErrorCode::kCorrupt, concat("table '", name, "': the manifest says ", wanted,
                                              ", which is not a type of weights or optimizer"));
    }
    return found - std::begin(names);
  };
  return RowLayout::of(
      dim, static_cast<FloatType>(number_of(kFloatTypeNames, weights, std::identity{})),
      static_cast<RowOptimizerType>(number_of(kRowOptimizers, optimizer, &RowOptimizerKind::name)));
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
  return from_json(text.str(), directory);
}

Manifest Manifest::from_json(const std::string& text, const std::string& directory) {
  const std::string path = directory + "/" + kManifestFile;
  try {
    if (depth_of(text) > kMaxDepth) {
      throw Error(ErrorCode::kCorrupt,
                  concat(path, ": not a manifest: nested more than ", kMaxDepth, " deep"));
    }
    Json json = Json::parse(text);  // with a callback it would look at all elements for each one
    if (json.at("format") != kFormat && json.at("format") != kPackedFormat) {
      throw Error(ErrorCode::kCorrupt,
                  concat(path, ": format ", json.at("format").dump(),
                         ", this program reads formats ", kPackedFormat, " and ", kFormat));
    }
    const std::string checksum = json.at("checksum");
    json.erase("checksum");
    if (checksum != to_hex(hash_bytes(json.dump()))) {
      throw Error(ErrorCode::kCorrupt, path + ": checksum does not match its content");
    }
    Manifest manifest = parse(json);
    const std::string name = std::filesystem::path(directory).filename().string();
    if (const auto named = step_of(name); named && *named != manifest.step) {
      throw Error(ErrorCode::kCorrupt, concat(path, ": the checkpoint is of step ", manifest.step,
                                              ", its folder says otherwise: rename that to ",
                                              checkpoint_name(manifest.step)));
    }
    check_manifest(manifest, path);
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, concat(path, ": not a manifest: ", error.what()));
  }
}

data::DataPosition Manifest::position_of(std::int64_t rank, std::int64_t num_ranks) const {
  const auto old_ranks = std::ssize(positions);
  if (num_ranks == old_ranks) return positions[static_cast<std::size_t>(rank)];
  data::DataPosition position = positions.front();
  for (const data::DataPosition& p : positions) {
    if (p.epoch > position.epoch) position = p;
    if (p.epoch < position.epoch) continue;
    position.batches = std::max(position.batches, p.batches);
    position.next_row = std::max(position.next_row, p.next_row);
    position.rows_read = std::max(position.rows_read, p.rows_read);
  }
  // Batches are counted per rank: with fewer ranks the same rows make proportionally more batches.
  position.batches = position.batches * old_ranks / num_ranks;
  return position;
}

std::string pending_file(std::int64_t rank) { return fmt::format("pending-{}.bin", rank); }

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:012}", step); }

std::optional<std::int64_t> step_of(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kPrefix.size(), end, step);
  const bool is_ours =
      read.ec == std::errc() && read.ptr == end && step >= 0 && checkpoint_name(step) == name;
  return is_ours ? std::optional(step) : std::nullopt;
}

}  // namespace satrap::checkpoint
