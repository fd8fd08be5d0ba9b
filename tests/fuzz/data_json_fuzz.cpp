// The reader of JSON lines with keys of every kind, some within others: any bytes are rows or are
// refused, wherever the file is cut into blocks.
#include "tests/fuzz/csv_schema.h"
#include "tests/fuzz/rows.h"

namespace {

/// The columns of CSV, and a key within one that is a column itself.
satrap::data::Schema json_schema() {
  satrap::data::Schema schema = satrap::fuzz::csv_schema();
  schema.raw_numeric.push_back({"user.id"});
  return schema;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const satrap::data::Schema schema = json_schema();
  satrap::fuzz::read_as_one_and_as_many(schema, satrap::fuzz::text_of(data, size),
                                        satrap::data::FileFormat::kJson);
  return 0;
}
