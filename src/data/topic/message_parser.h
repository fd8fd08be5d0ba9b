#pragma once

#include <cstdint>
#include <vector>

#include "src/data/columnar/parquet_parser.h"
#include "src/data/text/block_parser.h"

namespace satrap::data {

/// Parses messages of columns. A row group, or record batch, in which Arrow finds damage has no
/// good row: all of it is read before any of its rows is used.
class MessageParser : public BlockParser {
 public:
  MessageParser(const Schema& schema, const RowPass& pass);

  void parse(const TextBlock& text, RowBlock& rows, BadRows& bad) override;

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;
  };

  void parse_group(const ParquetGroup& group, Range wanted, RowBlock& rows, BadRows& bad);
  void read_group(const ParquetGroup& group, Range wanted, RowBlock& rows, BadRows& bad);

  const RowPass pass_;
  ParquetParser columns_;
  RowFiller filler_;
  std::vector<ParquetValues> values_;
  RowBlock piece_;
  BadRows bad_of_piece_;
};

}  // namespace satrap::data
