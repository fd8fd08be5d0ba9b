#include "satrap/data/row_deliveries.h"

#include <cstdint>

#include "satrap/core/error.h"
#include "src/data/rows/byte_fields.h"
#include "src/data/rows/record_bytes.h"
#include "src/data/rows/row_block_bytes.h"

namespace satrap::data {

namespace {

template <class Piece, class Visit>
void visit_numbers(Piece& piece, const Visit& visit) {
  visit(piece.epoch);
  visit(piece.first_row);
  visit(piece.partition);
  visit(piece.begin);
  visit(piece.end);
  visit(piece.skip);
  visit(piece.num_rows);
}

}  // namespace

void RowDelivery::clear() {
  rows.num_rows = 0;
  bad = {};
  end_row = 0;
  stats = {};
  files.clear();
  pieces.clear();
  is_end = false;
}

void append(const RowDelivery& delivery, std::vector<std::byte>& bytes) {
  ByteWriter out(bytes);
  out.put(static_cast<std::uint8_t>(delivery.is_end));
  out.put(delivery.end_row);
  out.put(delivery.stats.bytes);
  out.put(delivery.stats.epoch_rows);
  out.put(delivery.stats.lag);
  out.put(delivery.stats.time_ms);
  put_bad_rows(delivery.bad, out);
  out.put(delivery.files.size());
  for (const FileNote& note : delivery.files) {
    out.put(note.number);
    put_data_file(note.file, out);
  }
  out.put(delivery.pieces.size());
  for (const TopicPiece& piece : delivery.pieces) visit_numbers(piece, [&](auto n) { out.put(n); });
  if (delivery.rows.num_rows > 0) append_block(delivery.rows, bytes);
}

void read(std::span<const std::byte> bytes, const Schema& schema, RowDelivery& delivery) {
  ByteReader in(bytes, "delivery of rows");
  const auto get_count = [&in] {
    const auto count = in.get<std::int64_t>();
    if (count < 0) in.fail(concat("a count of ", count));
    return count;
  };
  delivery.clear();
  delivery.is_end = in.get<std::uint8_t>() != 0;
  delivery.end_row = get_count();
  delivery.stats.bytes = get_count();
  delivery.stats.epoch_rows = in.get<double>();
  delivery.stats.lag = in.get<std::int64_t>();
  delivery.stats.time_ms = in.get<std::int64_t>();
  delivery.bad = get_bad_rows(in);
  for (auto n = in.get<std::size_t>(); n > 0; --n) {
    const std::int64_t number = get_count();
    delivery.files.push_back({.number = number, .file = get_data_file(in)});
  }
  for (auto n = in.get<std::size_t>(); n > 0; --n) {
    TopicPiece piece;
    visit_numbers(piece, [&](std::int64_t& number) { number = get_count(); });
    delivery.pieces.push_back(piece);
  }
  if (in.rest().empty()) return;
  delivery.rows.clear(static_cast<std::int64_t>(schema.raw_numeric.size()),
                      static_cast<std::int64_t>(schema.id_columns.size()), schema.num_labels());
  delivery.rows.kept.resize(schema.kept.size());
  read_block(in.rest(), schema.labels, delivery.rows);
  const RowBlock& rows = delivery.rows;
  if (rows.first_row < 0 || rows.first_row > INT64_MAX - rows.num_rows) {
    in.fail(concat("no row has the number ", rows.first_row, " + ", rows.num_rows));
  }
}

}  // namespace satrap::data
