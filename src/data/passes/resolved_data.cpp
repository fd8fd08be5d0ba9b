#include "src/data/passes/resolved_data.h"

#include <cstddef>
#include <span>

#include "satrap/core/error.h"
#include "src/data/files/remote_file.h"
#include "src/data/rows/byte_fields.h"
#include "src/data/rows/record_bytes.h"

namespace satrap::data {
namespace {

void put_files(const std::vector<DataFile>& files, ByteWriter& out) {
  out.put(files.size());
  for (const DataFile& file : files) put_data_file(file, out);
}

std::vector<DataFile> get_files(ByteReader& in) {
  std::vector<DataFile> files;
  const auto count = in.get<std::size_t>();
  for (std::size_t i = 0; i < count; ++i) files.push_back(get_data_file(in));
  return files;
}

[[noreturn]] void refuse(std::int64_t rank, const std::string& what) {
  throw Error(ErrorCode::kInvalidConfig,
              concat("rank ", rank, " sees other data files than rank 0: ", what,
                     "; all ranks must read the same files"));
}

DataFile find(const DataFile& of_chief, std::int64_t rank) {
  if (!of_chief.is_regular() || is_remote(of_chief.path)) return of_chief;
  DataFile here;
  try {
    here = describe_file(of_chief.path);
  } catch (const Error& error) {
    refuse(rank, error.what());
  }
  if (here.bytes == of_chief.bytes) return here;
  refuse(rank, concat("'", here.path, "' has ", here.bytes, " bytes here and ", of_chief.bytes,
                      " bytes there"));
}

}  // namespace

std::string to_bytes(const ResolvedData& data) {
  std::vector<std::byte> bytes;
  ByteWriter out(bytes);
  put_files(data.train, out);
  put_files(data.eval, out);
  out.put(data.first_eval_row);
  out.put_text(data.topic);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ResolvedData read_resolved_data(const std::string& bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)), "the resolved data");
  ResolvedData data;
  data.train = get_files(in);
  data.eval = get_files(in);
  data.first_eval_row = in.get<std::int64_t>();
  data.topic = in.get_text();
  in.require_end();
  return data;
}

FileList as_seen_here(const std::vector<DataFile>& of_chief, std::int64_t rank) {
  FileList files;
  for (const DataFile& file : of_chief) files.add(find(file, rank));
  return files;
}

}  // namespace satrap::data
