#include "src/checkpoint/data_record.h"

#include <nlohmann/json.hpp>

#include "satrap/core/error.h"

namespace satrap::checkpoint {
namespace {

using RecordJson = nlohmann::ordered_json;

RecordJson json_of(const data::DataFile& file) {
  return {{"path", file.path},     {"bytes", file.bytes},         {"modified_ns", file.modified_ns},
          {"xxh3", file.checksum}, {"first_row", file.first_row}, {"rows", file.num_rows}};
}

}  // namespace

std::string data_record(const std::vector<data::DataFile>& files) {
  std::string text = "{\"train\": [";
  for (const data::DataFile& file : files) {
    text += text.back() == '[' ? "\n" : ",\n";
    text += json_of(file).dump(-1, ' ', false, RecordJson::error_handler_t::replace);
  }
  return text + "\n]}\n";
}

std::vector<data::DataFile> parse_data_record(const std::string& text, const std::string& name) {
  std::vector<data::DataFile> files;
  try {
    const RecordJson json = RecordJson::parse(text);
    for (const RecordJson& file : json.at("train")) {
      files.push_back({.path = file.at("path"),
                       .bytes = file.at("bytes"),
                       .modified_ns = file.at("modified_ns"),
                       .checksum = file.at("xxh3"),
                       .first_row = file.at("first_row"),
                       .num_rows = file.at("rows")});
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt,
                concat(name, ": not a record of training files: ", error.what()));
  }
  return files;
}

}  // namespace satrap::checkpoint
