#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/data/row_block_source.h"
#include "satrap/data/schema.h"
#include "src/data/row_layout.h"
#include "src/data/text_block.h"

namespace satrap::data {

/// Rows of a block that could not be parsed.
struct BadRows {
  static constexpr std::size_t kMaxMessages = 10;

  std::int64_t count = 0;
  std::vector<std::string> messages;  // of the first ones: "file:line: column 'I3': expected ..."
};

/// The id that stands for a missing value where the schema says `missing: own_id`.
inline constexpr std::uint64_t kMissingId = 0x6D697373696E67ULL;  // "missing"; below 2^54

/// Parses blocks of text into blocks of rows. Fields are parsed where they lie in the text; nothing
/// is allocated per row. One thread at a time; the schema must outlive the parser.
class RowParser {
 public:
  RowParser(const Schema& schema, const RowPass& pass);

  /// Replaces `rows` and `bad`. Lines that are outside of the pass are counted and skipped; blank
  /// ones and rows with an error are left out of `rows` unless the pass keeps every line.
  void parse(const TextBlock& text, RowBlock& rows, BadRows& bad);

 private:
  // Why the current row is bad. Views point into the text or at literals.
  struct Fault {
    const RowLayout::Column* column = nullptr;  // null: the row as a whole
    std::string_view reason;
    std::string_view field;
    bool shows_field = false;
    bool about_quotes = false;
  };

  void prepare(const TextBlock& text, RowBlock& rows);
  void finish(RowBlock& rows);
  const char* parse_row(const char* p, RowBlock& rows);
  const char* parse_general(const char* p, const RowLayout::Column& column, RowBlock& rows);
  const char* find_field(const char* p, const RowLayout::Column& column, std::string_view& field);
  bool unquote(const char*& p, const RowLayout::Column& column, std::string_view& field);
  bool consume(const RowLayout::Consumer& consumer,
               std::string_view field,
               bool missing,
               const RowLayout::Column& column,
               RowBlock& rows);
  bool parse_label(const LabelConfig& config,
                   std::string_view field,
                   const RowLayout::Column& column,
                   float& label);
  float& label_of_row(std::int64_t label, RowBlock& rows) const {
    return rows.labels[row_ * num_labels_ + static_cast<std::size_t>(label)];
  }
  bool parse_bag(std::int64_t target,
                 std::string_view field,
                 const RowLayout::Column& column,
                 RowBlock& rows);
  bool parse_id(const FeatureConfig& feature,
                std::string_view text,
                const RowLayout::Column& column,
                std::uint64_t& id);
  void push_id(std::int64_t target, std::uint64_t id, float weight, RowBlock& rows);
  bool is_missing(std::string_view field) const;
  bool fail(const RowLayout::Column& column, std::string_view reason, std::string_view field);
  bool fail_quotes(const RowLayout::Column& column, std::string_view reason);
  void add_row_without_values(std::int64_t row, RowBlock& rows);
  void report(const TextBlock& text, const char* line, std::int64_t line_number, BadRows& bad);

  const Schema& schema_;
  const RowPass pass_;
  const char delimiter_;
  const char quote_;  // '\0': none
  const bool trim_;
  const std::size_t num_labels_;

  const RowLayout* layout_ = nullptr;
  std::size_t row_ = 0;                  // rows finished
  std::vector<std::int64_t> bag_sizes_;  // ids so far: [schema.id_columns]
  std::string unquoted_;                 // a field whose quotes had to be removed
  Fault fault_;
};

}  // namespace satrap::data
