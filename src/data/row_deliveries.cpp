#include "satrap/data/row_deliveries.h"

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "satrap/core/error.h"
#include "src/data/row_block_bytes.h"

namespace satrap::data {
namespace {

class DeliveryWriter {
 public:
  explicit DeliveryWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    put_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void put(std::string_view text) {
    put(static_cast<std::int64_t>(text.size()));
    put_bytes(std::as_bytes(std::span(text)));
  }

 private:
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte>& bytes_;
};

class DeliveryReader {
 public:
  explicit DeliveryReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T get() {
    T value;
    const std::span<const std::byte> bytes = take(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  /// Of bytes, entries or rows.
  std::int64_t get_count() {
    const auto count = get<std::int64_t>();
    if (count < 0) throw Error(ErrorCode::kCorrupt, concat("delivery of rows: a count of ", count));
    return count;
  }
  std::string get_text() {
    const std::span<const std::byte> bytes = take(static_cast<std::size_t>(get_count()));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) {
      throw Error(ErrorCode::kCorrupt, concat("delivery of rows: ", rest_.size(),
                                              " bytes are left where ", count, " are expected"));
    }
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const std::byte> rest_;
};

void put_bad_rows(const BadRows& bad, DeliveryWriter& out) {
  out.put(bad.count);
  out.put(static_cast<std::int64_t>(bad.messages.size()));
  for (const std::string& message : bad.messages) out.put(message);
  out.put(static_cast<std::int64_t>(bad.reasons.size()));
  for (const auto& [reason, count] : bad.reasons) {
    out.put(reason);
    out.put(count);
  }
}

void get_bad_rows(DeliveryReader& in, BadRows& bad) {
  bad.count = in.get_count();
  for (std::int64_t i = in.get_count(); i > 0; --i) bad.messages.push_back(in.get_text());
  for (std::int64_t i = in.get_count(); i > 0; --i) {
    std::string reason = in.get_text();
    bad.reasons[std::move(reason)] = in.get_count();
  }
  if (bad.count > 0 && bad.messages.empty()) {
    throw Error(ErrorCode::kCorrupt, "delivery of rows: bad rows without a message");
  }
}

void put_note(const FileNote& note, DeliveryWriter& out) {
  out.put(note.number);
  out.put(note.file.bytes);
  out.put(note.file.modified_ns);
  out.put(note.file.checksum);
  out.put(note.file.first_row);
  out.put(note.file.num_rows);
}

FileNote get_note(DeliveryReader& in) {
  FileNote note;
  note.number = in.get_count();
  note.file.bytes = in.get<std::int64_t>();
  note.file.modified_ns = in.get<std::int64_t>();
  note.file.checksum = in.get_text();
  note.file.first_row = in.get<std::int64_t>();
  note.file.num_rows = in.get<std::int64_t>();
  return note;
}

}  // namespace

void RowDelivery::clear() {
  rows.num_rows = 0;
  bad = {};
  end_row = 0;
  stats = {};
  files.clear();
  is_end = false;
}

void append(const RowDelivery& delivery, std::vector<std::byte>& bytes) {
  DeliveryWriter out(bytes);
  out.put(delivery.is_end);
  out.put(delivery.end_row);
  out.put(delivery.stats.bytes);
  out.put(delivery.stats.total_bytes);
  out.put(delivery.stats.epoch_rows);
  put_bad_rows(delivery.bad, out);
  out.put(static_cast<std::int64_t>(delivery.files.size()));
  for (const FileNote& note : delivery.files) put_note(note, out);
  if (delivery.rows.num_rows > 0) append_block(delivery.rows, bytes);
}

void read(std::span<const std::byte> bytes, const Schema& schema, RowDelivery& delivery) {
  DeliveryReader in(bytes);
  delivery.clear();
  delivery.is_end = in.get<std::uint8_t>() != 0;
  delivery.end_row = in.get_count();
  delivery.stats.bytes = in.get_count();
  delivery.stats.total_bytes = in.get_count();
  delivery.stats.epoch_rows = in.get<double>();
  get_bad_rows(in, delivery.bad);
  for (std::int64_t i = in.get_count(); i > 0; --i) delivery.files.push_back(get_note(in));
  if (in.rest().empty()) return;
  delivery.rows.clear(static_cast<std::int64_t>(schema.raw_numeric.size()),
                      static_cast<std::int64_t>(schema.id_columns.size()), schema.num_labels());
  delivery.rows.kept.resize(schema.kept.size());
  read_block(in.rest(), delivery.rows);
}

}  // namespace satrap::data
