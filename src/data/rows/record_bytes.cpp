#include "src/data/rows/record_bytes.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace satrap::data {

void put_bad_rows(const BadRows& bad, ByteWriter& out) {
  out.put(bad.left_out);
  out.put(bad.count);
  if (bad.count == 0) return;
  out.put(bad.last_row);
  out.put(bad.messages.size());
  for (const std::string& message : bad.messages) out.put_text(message);
  out.put(bad.reasons.size());
  for (const auto& [reason, count] : bad.reasons) {
    out.put_text(reason);
    out.put(count);
  }
}

BadRows get_bad_rows(ByteReader& in) {
  BadRows bad;
  bad.left_out = in.get<std::int64_t>();
  bad.count = in.get<std::int64_t>();
  if (bad.count == 0) return bad;
  if (bad.count < 0) in.fail(concat("a count of ", bad.count));
  bad.last_row = in.get<std::int64_t>();
  for (auto n = in.get<std::size_t>(); n > 0; --n) bad.messages.push_back(in.get_text());
  if (bad.messages.empty()) in.fail("bad rows without a message");
  for (auto n = in.get<std::size_t>(); n > 0; --n) {
    std::string reason = in.get_text();
    bad.reasons[std::move(reason)] = in.get<std::int64_t>();
  }
  return bad;
}

void put_data_file(const DataFile& file, ByteWriter& out) {
  out.put_text(file.path);
  out.put_text(file.checksum);
  for (const std::int64_t number : {file.bytes, file.modified_ns, file.first_row, file.num_rows}) {
    out.put(number);
  }
}

DataFile get_data_file(ByteReader& in) {
  DataFile file;
  file.path = in.get_text();
  file.checksum = in.get_text();
  for (std::int64_t* const number :
       {&file.bytes, &file.modified_ns, &file.first_row, &file.num_rows}) {
    *number = in.get<std::int64_t>();
  }
  return file;
}

}  // namespace satrap::data
