#include "src/data/text/block_parser.h"

#include "satrap/core/error.h"
#include "src/data/text/json_fields.h"
#include "src/data/text/libsvm_fields.h"
#include "src/data/text/named_parser.h"
#include "src/data/text/row_parser.h"

namespace satrap::data {

std::unique_ptr<BlockParser> make_block_parser(FileFormat format,
                                               const Schema& schema,
                                               const RowPass& pass) {
  SATRAP_CHECK(!is_columnar(format), name_of(format), " has no lines");
  switch (format) {
    case FileFormat::kJson:
      return std::make_unique<NamedParser<JsonFields>>(schema, pass);
    case FileFormat::kLibsvm:
      return std::make_unique<NamedParser<LibsvmFields>>(schema, pass);
    case FileFormat::kLibffm:
      return std::make_unique<NamedParser<LibffmFields>>(schema, pass);
    default:
      return std::make_unique<RowParser>(schema, pass);
  }
}

}  // namespace satrap::data
