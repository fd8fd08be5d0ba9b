// The readers of libsvm and libffm: any bytes are rows or are refused, wherever the file is cut
// into blocks.
#include "tests/fuzz/rows.h"

namespace {

/// The label, a number and ids with weights, by the column that the format has for them.
satrap::data::Schema sparse_schema(satrap::data::DataFormat format, const std::string& ids) {
  satrap::data::DataConfig config;
  config.format = format;
  config.schema.label.positive = {"1", "+1"};
  config.schema.label.negative = {"-1", "0"};
  config.schema.numeric.emplace_back().name = "3";
  config.schema.features.push_back({.name = ids, .weight_separator = ":", .max_length = 4});
  config.schema.features.push_back({.name = "5", .type = satrap::data::IdType::kInt});
  return satrap::data::resolve_schema(config);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const satrap::data::Schema svm =
      sparse_schema(satrap::data::DataFormat::kLibsvm, "features");
  static const satrap::data::Schema ffm = sparse_schema(satrap::data::DataFormat::kLibffm, "0");
  const auto text = satrap::fuzz::text_of(data, size);
  satrap::fuzz::read_as_one_and_as_many(svm, text, satrap::data::FileFormat::kLibsvm);
  satrap::fuzz::read_as_one_and_as_many(ffm, text, satrap::data::FileFormat::kLibffm);
  return 0;
}
