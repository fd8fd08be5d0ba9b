// The other files of a checkpoint, with right sizes and checksums: rows of a table, dense tensors,
// lookups made ahead, fitted transforms. The first bytes choose which, and what the manifest says
// about it.
#include <string>

#include "satrap/checkpoint/checkpoint_reader.h"
#include "satrap/core/hash.h"
#include "satrap/data/transforms.h"
#include "satrap/table/row_file.h"
#include "tests/fuzz/csv_schema.h"
#include "tests/fuzz/folder.h"

namespace {

using satrap::checkpoint::Manifest;
using satrap::fuzz::is_refused;

struct Given {
  std::uint8_t kind, flags, a, b;
  std::string content;
};

void load_rows(const Given& given, const std::string& path, const std::string& xxh3) {
  satrap::table::TableSpec spec;
  spec.name = "t";
  spec.dim = 1 + given.a % 8;
  spec.weights = static_cast<satrap::FloatType>(given.flags % 3);
  spec.optimizer.type = static_cast<satrap::RowOptimizerType>(given.b % 5);
  satrap::table::Table table(spec, 1);
  const bool is_packed = (given.flags & 4) != 0, weights_only = (given.flags & 8) != 0;
  const std::int64_t row_bytes =
      is_packed ? table.layout().packed_bytes() : table.layout().row_bytes;
  satrap::table::load_rows({.path = path,
                            .row_bytes = weights_only ? 4 * std::int64_t{given.a} : row_bytes,
                            .bytes = std::ssize(given.content),
                            .xxh3 = xxh3,
                            .is_packed = is_packed,
                            .part = (given.flags >> 4) % 4,
                            .num_parts = std::int64_t{1} << (given.flags >> 6),
                            .weights_only = weights_only},
                           table, {.shard = given.b / 5 % 2, .num_shards = 2, .last_step = 9});
}

void load(const Given& given, const satrap::fuzz::Folder& folder) {
  static const satrap::data::Schema schema = satrap::fuzz::csv_schema();
  const std::string xxh3 = satrap::to_hex(satrap::hash_bytes(given.content));
  const auto write = [&](const std::string& name) {
    folder.write(name, given.content);
    Manifest manifest;
    manifest.files[name] = {std::ssize(given.content), xxh3};
    manifest.dense = {{"w", {given.a, given.b}}, {"b", {given.a}}};
    return manifest;
  };
  switch (given.kind % 4) {
    case 0:
      write("table-0.bin");
      load_rows(given, folder.path() + "/table-0.bin", xxh3);
      return;
    case 1:
      satrap::checkpoint::read_dense(folder.path(), write("dense.bin"));
      return;
    case 2:
      satrap::checkpoint::read_pending(folder.path(), write("pending-0.bin"), 0);
      return;
    default:
      const auto transforms = satrap::data::FittedTransforms::from_json(given.content, schema);
      const std::string text = transforms.to_json(schema);
      if (satrap::data::FittedTransforms::from_json(text, schema).to_json(schema) != text) {
        satrap::fuzz::fail("other transforms");
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return -1;
  static const satrap::fuzz::Folder folder("step-000000000006");
  const Given given{data[0], data[1], data[2], data[3],
                    std::string(satrap::fuzz::text_of(data + 4, size - 4))};
  is_refused([&] { load(given, folder); });
  return 0;
}
