// The reader of Criteo's TSV: any bytes are rows or are refused, wherever the file is cut into
// blocks.
#include "tests/fuzz/rows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const satrap::data::Schema schema = [] {
    satrap::data::DataConfig config;
    config.schema_name = "criteo";
    return satrap::data::resolve_schema(config);
  }();
  satrap::fuzz::read_as_one_and_as_many(schema, satrap::fuzz::text_of(data, size));
  return 0;
}
