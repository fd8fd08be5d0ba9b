// The manifest of a checkpoint: any text with a right checksum is a checkpoint or is refused,
// whatever it says about the files, which are there as it says. Only what it reads is described by
// it again.
#include <string>

#include <nlohmann/json.hpp>

#include "satrap/checkpoint/checkpoint.h"
#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/hash.h"
#include "tests/fuzz/folder.h"

namespace {

using nlohmann::ordered_json;
using satrap::checkpoint::Manifest;
using satrap::fuzz::is_refused;

constexpr std::int64_t kMaxFileBytes = 1 << 14;

bool is_plain_name(const std::string& name) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  return !name.empty() && name.size() <= 40 && name[0] >= 'a' && name != "manifest.json" &&
         name.find_first_not_of(kLetters) == name.npos;
}

/// Writes a file as the manifest describes it, if it is small, and puts its checksum right.
void put_right(const std::string& name, ordered_json& file, const satrap::fuzz::Folder& folder) {
  if (!is_plain_name(name) || !file.is_object() || !file.contains("bytes")) return;
  if (!file["bytes"].is_number_integer()) return;
  const auto bytes = file["bytes"].get<std::int64_t>();
  if (bytes < 0 || bytes > kMaxFileBytes) return;
  const std::string content(static_cast<std::size_t>(bytes), '\0');
  folder.write(name, content);
  file["xxh3"] = satrap::to_hex(satrap::hash_bytes(content));
}

/// The manifest with all its files there, and every checksum right.
std::string put_right(std::string_view text, const satrap::fuzz::Folder& folder) {
  ordered_json json = ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) return std::string(text);
  if (json.contains("files") && json["files"].is_object() && json["files"].size() < 8) {
    for (auto& [name, file] : json["files"].items()) put_right(name, file, folder);
  }
  const auto dump = [&] {
    return json.dump(-1, ' ', false, ordered_json::error_handler_t::ignore);
  };
  json.erase("checksum");
  json["checksum"] = satrap::to_hex(satrap::hash_bytes(dump()));
  return dump();
}

void read(const satrap::fuzz::Folder& folder) {
  const std::string path = folder.path();
  const Manifest manifest = Manifest::read(path);
  for (const Manifest::Table& table : manifest.tables) {
    is_refused([&] { manifest.row_bytes(table.layout()); });
    is_refused([&] { satrap::checkpoint::row_files(path, manifest, table, 0); });
  }
  is_refused([&] { manifest.position_of(0, 1); });
  is_refused([&] { manifest.position_of(1, 7); });
  is_refused([&] { satrap::checkpoint::read_dense(path, manifest); });
  is_refused([&] { satrap::checkpoint::read_pending(path, manifest, 0); });
  is_refused([&] { satrap::checkpoint::read_transforms(path); });
  is_refused([&] { satrap::checkpoint::find_config(path); });
  is_refused([&] { satrap::checkpoint::verify_checkpoint(path); });
  satrap::checkpoint::list_checkpoints(folder.parent());
  if (manifest.has_packed_rows) return;  // written as another format
  folder.write("manifest.json", manifest.to_json());
  if (Manifest::read(path).to_json() != manifest.to_json()) satrap::fuzz::fail("another manifest");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const satrap::fuzz::Folder folder("step-000000000006");
  folder.clear();
  folder.write("manifest.json", put_right(satrap::fuzz::text_of(data, size), folder));
  is_refused([] { read(folder); });
  return 0;
}
