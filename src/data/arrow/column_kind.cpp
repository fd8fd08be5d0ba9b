#include "src/data/arrow/column_kind.h"

#include <string>
#include <unordered_map>
#include <vector>

#include <parquet/schema.h>
#include <parquet/types.h>

namespace satrap::data {
namespace {

using Kind = ParquetFile::Kind;

const parquet::IntLogicalType* integer_type(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  return logical != nullptr && logical->is_int()
             ? static_cast<const parquet::IntLogicalType*>(logical.get())
             : nullptr;
}

Kind kind_of_time(const parquet::TimestampLogicalType& type) {
  switch (type.time_unit()) {
    case parquet::LogicalType::TimeUnit::MILLIS:
      return Kind::kMilliseconds;
    case parquet::LogicalType::TimeUnit::MICROS:
      return Kind::kMicroseconds;
    case parquet::LogicalType::TimeUnit::NANOS:
      return Kind::kNanoseconds;
    default:
      return Kind::kOther;
  }
}

Kind kind_of(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  const bool is_plain = logical == nullptr || logical->is_none() || logical->is_null();
  switch (column.physical_type()) {
    case parquet::Type::BOOLEAN:
      return Kind::kTruth;
    case parquet::Type::INT32:
      if (!is_plain && logical->is_date()) return Kind::kDays;
      return is_plain || logical->is_int() ? Kind::kInteger : Kind::kOther;
    case parquet::Type::INT64:
      if (!is_plain && logical->is_timestamp()) {
        return kind_of_time(static_cast<const parquet::TimestampLogicalType&>(*logical));
      }
      if (!is_plain && !logical->is_int()) return Kind::kOther;
      return is_unsigned(column) ? Kind::kUnsigned : Kind::kInteger;
    case parquet::Type::FLOAT:
      return is_plain ? Kind::kFloat : Kind::kOther;
    case parquet::Type::DOUBLE:
      return is_plain ? Kind::kDouble : Kind::kOther;
    case parquet::Type::BYTE_ARRAY:
      return is_plain || logical->is_string() || logical->is_enum() || logical->is_JSON() ||
                     logical->is_BSON()
                 ? Kind::kText
                 : Kind::kOther;
    default:
      return Kind::kOther;
  }
}

/// "Timestamp", "Int(bitWidth=8, isSigned=false)" without the brackets, or "DOUBLE".
std::string type_name(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  if (logical == nullptr || logical->is_none()) {
    return parquet::TypeToString(column.physical_type());
  }
  const std::string text = logical->ToString();
  return text.substr(0, text.find('('));
}

/// `is_whole`: no other column has the same root, as those of a struct or a map do.
ParquetFile::Column describe_column(const parquet::ColumnDescriptor& column,
                                    const std::string& root,
                                    bool is_whole) {
  const int lists = column.max_repetition_level();
  ParquetFile::Column described;
  described.is_list = lists > 0;
  const bool is_readable = lists == 0 || (lists == 1 && is_whole);
  described.kind = is_readable ? kind_of(column) : Kind::kOther;
  described.is_null = column.logical_type() != nullptr && column.logical_type()->is_null();
  described.name = described.is_list && is_whole ? root : column.path()->ToDotString();
  const std::string type = type_name(column);
  described.type = lists == 0               ? type
                   : lists == 1 && is_whole ? "list of " + type
                   : lists > 1 && is_whole  ? "list of lists"
                                            : "part of a map or of a list of structs";
  return described;
}

}  // namespace

bool is_unsigned(const parquet::ColumnDescriptor& column) {
  const parquet::IntLogicalType* const integer = integer_type(column);
  return integer != nullptr && !integer->is_signed();
}

std::int16_t element_level(const parquet::ColumnDescriptor& column) {
  std::vector<const parquet::schema::Node*> nodes;  // from the leaf to the root
  for (const parquet::schema::Node* node = column.schema_node().get(); node != nullptr;
       node = node->parent()) {
    nodes.push_back(node);
  }
  std::int16_t level = 0, found = 0;
  for (auto node = nodes.rbegin() + 1; node != nodes.rend(); ++node) {  // the root is the file
    if (!(*node)->is_required()) ++level;
    if ((*node)->is_repeated()) found = level;
  }
  return found;
}

std::vector<ParquetFile::Column> describe_columns(const parquet::SchemaDescriptor& schema) {
  const auto root_of = [&](int i) { return schema.GetColumnRoot(i)->name(); };
  std::unordered_map<std::string, int> leaves;
  for (int i = 0; i < schema.num_columns(); ++i) ++leaves[root_of(i)];
  std::vector<ParquetFile::Column> columns;
  for (int i = 0; i < schema.num_columns(); ++i) {
    const std::string root = root_of(i);
    columns.push_back(describe_column(*schema.Column(i), root, leaves.at(root) == 1));
  }
  return columns;
}

}  // namespace satrap::data
