#include "src/data/block_parser.h"

#include "src/data/json_fields.h"
#include "src/data/libsvm_fields.h"
#include "src/data/message_parser.h"
#include "src/data/named_parser.h"
#include "src/data/row_parser.h"

namespace satrap::data {

std::unique_ptr<BlockParser> make_block_parser(FileFormat format,
                                               const Schema& schema,
                                               const RowPass& pass) {
  switch (format) {
    case FileFormat::kJson:
      return std::make_unique<NamedParser<JsonFields>>(schema, pass);
    case FileFormat::kLibsvm:
      return std::make_unique<NamedParser<LibsvmFields>>(schema, pass);
    case FileFormat::kLibffm:
      return std::make_unique<NamedParser<LibffmFields>>(schema, pass);
    case FileFormat::kParquet:
    case FileFormat::kArrow:
      return std::make_unique<MessageParser>(schema, pass);
    default:
      return std::make_unique<RowParser>(schema, pass);
  }
}

}  // namespace satrap::data
