#include "satrap/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/table/table.h"
#include "src/checkpoint/data_record.h"

namespace satrap::checkpoint {
namespace {

constexpr std::int64_t kBlockBytes = 1 << 20;

void read_in_blocks(const std::string& checkpoint,
                    const std::string& name,
                    const Manifest& manifest,
                    std::int64_t block_bytes,
                    const std::function<void(std::span<const std::byte>)>& take) {
  const std::string path = checkpoint + "/" + name;
  const auto entry = manifest.files.find(name);
  if (entry == manifest.files.end()) {
    throw Error(ErrorCode::kCorrupt, path + ": not in the manifest");
  }
  std::error_code missing;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, missing));
  if (missing) throw Error(ErrorCode::kCorrupt, path + ": missing");
  if (size != entry->second.bytes) {
    throw Error(ErrorCode::kCorrupt,
                concat(path, ": ", size, " bytes, the manifest says ", entry->second.bytes));
  }
  FileReader file(path);
  std::vector<std::byte> block(
      static_cast<std::size_t>(std::min(block_bytes, std::max<std::int64_t>(size, 1))));
  for (std::int64_t done = 0; done < size;) {
    const auto count = static_cast<std::size_t>(std::min(block_bytes, size - done));
    file.read(std::span(block).first(count));
    take(std::span<const std::byte>(block).first(count));
    done += static_cast<std::int64_t>(count);
  }
  if (to_hex(file.checksum()) != entry->second.xxh3) {
    throw Error(ErrorCode::kCorrupt, path + ": checksum does not match its content");
  }
}

std::vector<float> read_floats(const std::string& checkpoint,
                               const std::string& name,
                               const Manifest& manifest,
                               std::int64_t expected) {
  std::vector<float> values;
  read_checked(checkpoint, name, manifest, [&](std::span<const std::byte> block) {
    if (values.empty()) {  // the file has the size that the manifest says
      values.reserve(static_cast<std::size_t>(manifest.files.at(name).bytes) / sizeof(float));
    }
    const std::span floats(reinterpret_cast<const float*>(block.data()),
                           block.size() / sizeof(float));
    values.insert(values.end(), floats.begin(), floats.end());
  });
  if (std::ssize(values) != expected) {
    throw Error(ErrorCode::kCorrupt, concat(checkpoint, "/", name, ": ", values.size(),
                                            " numbers, the manifest describes ", expected));
  }
  return values;
}

std::string read_text(const std::string& checkpoint,
                      const std::string& name,
                      const Manifest& manifest) {
  std::string text;
  read_checked(checkpoint, name, manifest, [&](std::span<const std::byte> block) {
    text.append(reinterpret_cast<const char*>(block.data()), block.size());
  });
  return text;
}

std::int64_t rows_per_block(std::int64_t row_bytes) {
  return std::max<std::int64_t>(1, kBlockBytes / row_bytes) * row_bytes;
}

void check_tables(const std::string& checkpoint,
                  const Manifest& manifest,
                  const pipeline::Model& model) {
  const std::vector<table::TableSpec>& specs = model.specs.tables;
  if (manifest.tables.size() != specs.size()) {
    throw Error(ErrorCode::kInvalidConfig, concat(checkpoint, ": has ", manifest.tables.size(),
                                                  " tables, the configuration ", specs.size()));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Manifest::Table& saved = manifest.tables[i];
    const table::TableSpec& spec = specs[i];
    const std::int64_t row_bytes = manifest.row_bytes(spec.layout());
    const std::string optimizer = name_of(spec.optimizer.type);
    if (saved.name == spec.name && saved.optimizer != optimizer) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(checkpoint, ": table '", saved.name, "' was trained with optimizer ",
                         saved.optimizer, ", the configuration says ", optimizer));
    }
    const std::string weights = name_of(spec.weights);
    if (saved.name == spec.name && saved.weights != weights) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(checkpoint, ": table '", saved.name, "' has weights in ", saved.weights,
                         ", the configuration says ", weights));
    }
    if (saved.name != spec.name || saved.dim != spec.dim || saved.row_bytes != row_bytes) {
      throw Error(
          ErrorCode::kInvalidConfig,
          concat(checkpoint, ": table '", saved.name, "' with rows of ", saved.dim, " weights (",
                 saved.row_bytes, " bytes with optimizer state); the configuration has '",
                 spec.name, "' with ", spec.dim, " (", row_bytes, " bytes)"));
    }
  }
}

/// The loss scale is of one precision alone: a network of another leaves it, and one that finds
/// none begins with its own.
void load_dense(const std::string& checkpoint, const Manifest& manifest, pipeline::Model& model) {
  const std::vector<float> values = read_dense(checkpoint, manifest);
  auto next = values.begin();
  if (!model.network->has_fixed_state()) {
    dense::Savable::State saved;
    for (const Manifest::Tensor& tensor : manifest.dense) {
      saved.push_back({tensor.name, tensor.shape, {next, next + tensor.size()}});
      next += tensor.size();
    }
    return model.network->load(saved);
  }
  dense::Savable::State state = model.network->save();
  const auto require = [&](bool fits, const std::string& name) {
    if (fits || name == dense::Savable::kLossScaleTensor) return;
    throw Error(ErrorCode::kInvalidConfig,
                concat(checkpoint, ": dense tensor '", name,
                       "' does not fit the configured model or its optimizer"));
  };
  std::size_t num_taken = 0;
  for (const Manifest::Tensor& saved : manifest.dense) {
    const bool fits = num_taken < state.size() && state[num_taken].name == saved.name &&
                      state[num_taken].shape == saved.shape;
    require(fits, saved.name);
    if (fits) std::copy_n(next, saved.size(), state[num_taken++].values.begin());
    next += saved.size();
  }
  if (num_taken < state.size()) require(false, state[num_taken].name);
  model.network->load(state);
}

/// Whether every file has the size and checksum of the manifest.
bool is_intact(const std::string& checkpoint) {
  try {
    const Manifest manifest = Manifest::read(checkpoint);
    for (const auto& [name, unused] : manifest.files) {
      read_checked(checkpoint, name, manifest, [](std::span<const std::byte>) {});
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// The newest intact checkpoint of an earlier step in the folder of `checkpoint`; "" if there is
/// none.
std::string find_intact_before(const std::string& checkpoint) {
  std::filesystem::path path(checkpoint);
  if (!path.has_filename()) path = path.parent_path();
  const std::string parent = path.parent_path().string();
  const std::vector<std::string> names = list_directory(parent.empty() ? "." : parent);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!name->starts_with("step-") || *name >= path.filename().string()) continue;
    const std::string older = (path.parent_path() / *name).string();
    if (is_intact(older)) return older;
  }
  return "";
}

/// Runs `body`; adds the newest older intact checkpoint to the message of an Error(kCorrupt).
template <class Body>
auto offering_previous(const std::string& checkpoint, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    const std::string older = find_intact_before(checkpoint);
    throw Error(ErrorCode::kCorrupt,
                concat(error.what(), older.empty() ? "; there is no older one that is intact"
                                                   : "; the previous checkpoint is " + older +
                                                         " (--resume-from continues there)"));
  }
}

using Block = std::span<const std::byte>;

std::uint64_t hash_of(Block bytes) {
  return hash_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string digest_of(const std::string& checkpoint) {
  const Manifest manifest = Manifest::read(checkpoint);
  std::uint64_t digest = hash64(static_cast<std::uint64_t>(manifest.step));
  std::set<std::string> row_files;
  for (const Manifest::Table& table : manifest.tables) {
    // A sum, which depends neither on the order of the rows nor on their division among files.
    std::uint64_t rows = hash_bytes(table.name);
    const auto row_bytes = static_cast<std::size_t>(table.row_bytes);
    const RowLayout layout = manifest.has_packed_rows ? RowLayout{} : table.layout();
    std::vector<std::byte> packed(static_cast<std::size_t>(layout.packed_bytes()));
    for (const std::string& name : table.files) {
      row_files.insert(name);
      read_rows(checkpoint, name, manifest, table.row_bytes, [&](Block block) {
        for (std::size_t at = 0; at + row_bytes <= block.size(); at += row_bytes) {
          const Block row = block.subspan(at, row_bytes);
          if (!manifest.has_packed_rows) layout.pack(row.data(), packed.data());
          rows += hash_of(manifest.has_packed_rows ? row : Block(packed));
        }
      });
    }
    digest = hash64(digest, rows);
  }
  for (const auto& [name, file] : manifest.files) {
    if (row_files.contains(name)) continue;
    if (name == kConfigFile || name == kDataFile ||
        name == kTopicFile) {  // checked, but not part of what was learned
      read_checked(checkpoint, name, manifest, [](Block) {});
      continue;
    }
    std::uint64_t hash = hash_bytes(name);
    read_checked(checkpoint, name, manifest,
                 [&](Block block) { hash = hash64(hash, hash_of(block)); });
    digest = hash64(digest, hash);
  }
  return to_hex(digest);
}

}  // namespace

std::string read_transforms(const std::string& checkpoint) {
  return offering_previous(checkpoint, [&] {
    const Manifest manifest = Manifest::read(checkpoint);
    return read_text(checkpoint, kTransformsFile, manifest);
  });
}

std::string find_config(const std::string& checkpoint) {
  return offering_previous(checkpoint, [&]() -> std::string {
    const Manifest manifest = Manifest::read(checkpoint);
    if (!manifest.files.contains(kConfigFile)) return "";
    read_checked(checkpoint, kConfigFile, manifest, [](Block) {});
    return checkpoint + "/" + kConfigFile;
  });
}

std::optional<std::vector<data::DataFile>> read_data_files(const std::string& checkpoint) {
  using Files = std::vector<data::DataFile>;
  return offering_previous(checkpoint, [&]() -> std::optional<Files> {
    const Manifest manifest = Manifest::read(checkpoint);
    if (!manifest.files.contains(kDataFile)) return std::nullopt;
    return parse_data_record(read_text(checkpoint, kDataFile, manifest),
                             checkpoint + "/" + kDataFile);
  });
}

std::optional<data::TopicPosition> read_topic_position(const std::string& checkpoint) {
  return offering_previous(checkpoint, [&]() -> std::optional<data::TopicPosition> {
    const Manifest manifest = Manifest::read(checkpoint);
    if (!manifest.files.contains(kTopicFile)) return std::nullopt;
    return data::TopicPosition::from_json(read_text(checkpoint, kTopicFile, manifest),
                                          checkpoint + "/" + kTopicFile);
  });
}

std::vector<table::RowFile> row_files(const std::string& checkpoint,
                                      const Manifest& manifest,
                                      const Manifest::Table& saved,
                                      std::int32_t table) {
  std::vector<table::RowFile> files;
  const auto num_files = std::ssize(saved.files);
  for (const std::string& name : saved.files) {
    const auto entry = manifest.files.find(name);
    if (entry == manifest.files.end()) {
      throw Error(ErrorCode::kCorrupt, concat(checkpoint, "/", name, ": not in the manifest"));
    }
    table::RowFile& file =
        files.emplace_back(table::RowFile{.path = std::filesystem::absolute(checkpoint) / name,
                                          .table = table,
                                          .row_bytes = saved.row_bytes,
                                          .bytes = entry->second.bytes,
                                          .xxh3 = entry->second.xxh3,
                                          .is_packed = manifest.has_packed_rows});
    for (std::int64_t shard = 0; shard < num_files; ++shard) {
      if (!name.ends_with(fmt::format(".shard-{}.bin", shard))) continue;
      file.part = shard;
      file.num_parts = num_files;
    }
  }
  return files;
}

std::vector<float> read_dense(const std::string& checkpoint, const Manifest& manifest) {
  std::int64_t total = 0;
  for (const Manifest::Tensor& tensor : manifest.dense) total += tensor.size();
  return read_floats(checkpoint, kDenseFile, manifest, total);
}

std::vector<pipeline::PendingLookup> read_pending(const std::string& checkpoint,
                                                  const Manifest& manifest,
                                                  std::int64_t rank) {
  const std::string name = pending_file(rank);
  std::vector<pipeline::PendingLookup> pending;
  if (!manifest.files.contains(name)) return pending;
  std::vector<std::byte> bytes;
  read_checked(checkpoint, name, manifest, [&](std::span<const std::byte> block) {
    bytes.insert(bytes.end(), block.begin(), block.end());
  });
  std::span<const std::byte> rest = bytes;
  const auto take = [&](void* out, std::size_t size) {
    if (rest.size() < size) {
      throw Error(ErrorCode::kCorrupt, concat(checkpoint, "/", name, ": ends within a lookup"));
    }
    if (size > 0) std::memcpy(out, rest.data(), size);
    rest = rest.subspan(size);
  };
  while (!rest.empty()) {
    std::array<std::int64_t, 4> header{};
    take(header.data(), sizeof(header));
    const auto floats = [&](std::int64_t count) {
      const auto size = static_cast<std::size_t>(std::clamp<std::int64_t>(
          count, 0, static_cast<std::int64_t>(rest.size() / sizeof(float)) + 1));
      std::vector<float> values(size);
      take(values.data(), size * sizeof(float));
      return values;
    };
    std::vector<float> pooled = floats(header[2]);
    pending.push_back({header[0], header[1], std::move(pooled), floats(header[3])});
  }
  return pending;
}

void read_rows(const std::string& checkpoint,
               const std::string& name,
               const Manifest& manifest,
               std::int64_t row_bytes,
               const std::function<void(std::span<const std::byte> rows)>& take) {
  read_in_blocks(checkpoint, name, manifest, rows_per_block(row_bytes), take);
}

void read_checked(const std::string& checkpoint,
                  const std::string& name,
                  const Manifest& manifest,
                  const std::function<void(std::span<const std::byte> bytes)>& take) {
  read_in_blocks(checkpoint, name, manifest, kBlockBytes, take);
}

RestoredState load_checkpoint(const std::string& checkpoint,
                              pipeline::Model& model,
                              std::int64_t rank,
                              std::int64_t num_ranks) {
  return offering_previous(checkpoint, [&] {
    RestoredState state;
    state.manifest = Manifest::read(checkpoint);
    check_tables(checkpoint, state.manifest, model);
    pipeline::InitialRows rows{.step = state.manifest.step};
    for (std::size_t t = 0; t < state.manifest.tables.size(); ++t) {
      for (table::RowFile& file : row_files(checkpoint, state.manifest, state.manifest.tables[t],
                                            static_cast<std::int32_t>(t))) {
        rows.files.push_back(std::move(file));
      }
    }
    model.tables->begin(rows);
    load_dense(checkpoint, state.manifest, model);
    if (std::ssize(state.manifest.positions) == num_ranks) {
      state.pending = read_pending(checkpoint, state.manifest, rank);
    }
    return state;
  });
}

Manifest load_dense_network(const std::string& checkpoint, pipeline::Model& model) {
  return offering_previous(checkpoint, [&] {
    Manifest manifest = Manifest::read(checkpoint);
    check_tables(checkpoint, manifest, model);
    load_dense(checkpoint, manifest, model);
    return manifest;
  });
}

std::string verify_checkpoint(const std::string& path) {
  return offering_previous(path, [&] { return digest_of(path); });
}

}  // namespace satrap::checkpoint
