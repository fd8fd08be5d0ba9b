#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "satrap/data/batch_source.h"
#include "satrap/kernels/row_optimizer.h"
#include "satrap/trainer/checkpoint.h"

namespace satrap::trainer {

/// The files of a checkpoint directory `step-<12 digits>`:
///
///   manifest.json    everything below, and the size and XXH3 of every other file; has its own
///                    checksum, written last
///   dense.bin        the dense tensors (parameters, statistics, optimizer state), fp32, in order
///   table-<i>.bin    the rows of one table: key, last_step, count, weights, optimizer state
///   pending.bin      lookups already done for later steps (deterministic hybrid), fp32
///   transforms.json  the fitted numeric transforms
///
/// Numbers are little-endian.
struct Manifest {
  struct File {
    std::int64_t bytes = 0;
    std::string xxh3;  // hex
  };
  struct Table {
    std::string name, file, optimizer;
    std::int64_t dim = 0, row_bytes = 0, rows = 0;
  };
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t size() const;
  };
  struct Pending {
    std::int64_t step = 0, read_version = 0, pooled = 0, mask = 0;  // floats
  };

  std::string created, version;
  std::int64_t step = 0, examples = 0, nonfinite_steps = 0;
  data::DataPosition position;
  std::map<std::string, double> metrics;
  std::vector<Table> tables;
  std::vector<Tensor> dense;
  std::vector<Pending> pending;
  std::map<std::string, File> files;

  std::string to_json() const;

  /// Reads and checks `directory`/manifest.json. Throws Error(kCorrupt).
  static Manifest read(const std::string& directory);
};

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr const char* kDenseFile = "dense.bin";
inline constexpr const char* kPendingFile = "pending.bin";
inline constexpr const char* kTransformsFile = "transforms.json";
inline constexpr const char* kTemporaryPrefix = ".tmp-";
inline constexpr const char* kAbandonedPrefix = "abandoned-";

std::string optimizer_name(RowOptimizerType type);  // as in the configuration
std::string checkpoint_name(std::int64_t step);     // "step-000000001000"
std::string to_hex(std::uint64_t value);

}  // namespace satrap::trainer
