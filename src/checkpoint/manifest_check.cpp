#include "src/checkpoint/manifest_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::checkpoint {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 48;  // of anything a job counts
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 14;  // kMaxCount * kMaxRanks fits
constexpr std::int64_t kMaxDim = std::int64_t{1} << 16;    // as in the configuration

/// Checks the numbers of one manifest.
class ManifestChecker {
 public:
  explicit ManifestChecker(const std::string& path) : path_(path) {}

  template <class... Parts>
  void require(bool holds, Parts&&... parts) const {
    if (!holds)
      throw Error(ErrorCode::kCorrupt, concat(path_, ": ", std::forward<Parts>(parts)...));
  }

  void count(const std::string& what, std::int64_t value) const {
    require(value >= 0 && value <= kMaxCount, what, " is ", value, ", not one of 0 to ", kMaxCount);
  }

  /// Adds a count to a sum of the same kind, which is a count too.
  void add(const std::string& what, std::int64_t value, std::int64_t& sum) const {
    count(what, value);
    sum += value;
    require(sum <= kMaxCount, "the sum up to ", what, " is ", sum, ", more than ", kMaxCount);
  }

 private:
  const std::string& path_;
};

void check_rows(const Manifest& manifest,
                const Manifest::Table& table,
                const ManifestChecker& checker) {
  const std::string what = concat("table '", table.name, "': ");
  checker.require(table.dim >= 1 && table.dim <= kMaxDim, what, "dim is ", table.dim,
                  ", not one of 1 to ", kMaxDim);
  const std::int64_t row_bytes = manifest.row_bytes(table.layout());
  checker.require(table.row_bytes == row_bytes, what, "row_bytes is ", table.row_bytes,
                  ", rows of ", table.dim, " weights in ", table.weights, " with optimizer ",
                  table.optimizer, " have ", row_bytes);
}

/// The rows of a table are those of its files, which are no other's: `taken` has theirs.
void check_row_files(const Manifest& manifest,
                     const Manifest::Table& table,
                     std::set<std::string>& taken,
                     const ManifestChecker& checker) {
  const std::string what = concat("table '", table.name, "': ");
  std::int64_t bytes = 0;
  for (const std::string& name : table.files) {
    const auto file = manifest.files.find(name);
    checker.require(file != manifest.files.end(), what, "its file ", name, " is not listed");
    checker.require(taken.insert(name).second, what, "its file ", name, " is listed twice");
    checker.require(file->second.bytes % table.row_bytes == 0, what, name, " has ",
                    file->second.bytes, " bytes, rows have ", table.row_bytes);
    bytes += file->second.bytes;
  }
  checker.require(bytes / table.row_bytes == table.rows, what, "it has ", table.rows,
                  " rows, its files ", bytes / table.row_bytes);
}

std::int64_t size_of(const Manifest::Tensor& tensor, const ManifestChecker& checker) {
  std::int64_t size = 1;
  for (const std::int64_t extent : tensor.shape) {
    checker.count(concat("an extent of tensor '", tensor.name, "'"), extent);
    const bool fits = !__builtin_mul_overflow(size, extent, &size) && size <= kMaxCount;
    checker.require(fits, "tensor '", tensor.name, "' has more than ", kMaxCount, " numbers");
  }
  return size;
}

bool is_file_name(const std::string& name) {
  const auto is_bad = [](char c) { return c == '/' || static_cast<unsigned char>(c) < ' '; };
  return !name.empty() && name != "." && name != ".." && std::ranges::none_of(name, is_bad);
}

}  // namespace

void check_manifest(const Manifest& manifest, const std::string& path) {
  const ManifestChecker checker(path);
  checker.count("step", manifest.step);
  checker.count("examples", manifest.examples);
  checker.count("nonfinite_steps", manifest.nonfinite_steps);
  checker.count("ended_epochs", manifest.ended_epochs);
  checker.require(std::ssize(manifest.positions) <= kMaxRanks, "positions of ",
                  manifest.positions.size(), " ranks");
  for (const data::DataPosition& position : manifest.positions) {
    checker.count("epoch", position.epoch);
    checker.count("batches", position.batches);
    checker.count("next_row", position.next_row);
  }
  std::int64_t rows = 0, numbers = 0, bytes = 0;
  for (const Manifest::Table& table : manifest.tables) {
    check_rows(manifest, table, checker);
    checker.add(concat("rows of table '", table.name, "'"), table.rows, rows);
  }
  for (const Manifest::Tensor& tensor : manifest.dense) {
    checker.add(concat("size of tensor '", tensor.name, "'"), size_of(tensor, checker), numbers);
  }
  checker.require(manifest.folder.empty() || is_file_name(manifest.folder), "'", manifest.folder,
                  "' is not the name of a folder beside it");
  for (const auto& [name, file] : manifest.files) {
    checker.require(is_file_name(name), "'", name, "' is not the name of a file beside it");
    checker.add(concat("bytes of ", name), file.bytes, bytes);
  }
  std::set<std::string> taken;
  for (const Manifest::Table& table : manifest.tables) {
    check_row_files(manifest, table, taken, checker);
  }
  const auto dense = manifest.files.find(kDenseFile);
  const std::int64_t dense_bytes = dense == manifest.files.end() ? 0 : dense->second.bytes;
  const auto number_bytes = static_cast<std::int64_t>(sizeof(float));
  checker.require(dense_bytes == numbers * number_bytes, kDenseFile, " has ", dense_bytes,
                  " bytes, its tensors ", numbers * number_bytes);
}

}  // namespace satrap::checkpoint
