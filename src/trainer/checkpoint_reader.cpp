#include "checkpoint_reader.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"

namespace satrap::trainer {
namespace {

constexpr std::int64_t kBlockBytes = 1 << 20;

/// Reads a file of a checkpoint from front to back in blocks, then compares size and checksum.
void read_checked(const std::string& checkpoint,
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
  values.reserve(static_cast<std::size_t>(expected));
  read_checked(checkpoint, name, manifest, kBlockBytes, [&](std::span<const std::byte> block) {
    const auto* floats = reinterpret_cast<const float*>(block.data());
    values.insert(values.end(), floats, floats + block.size() / sizeof(float));
  });
  if (std::ssize(values) != expected) {
    throw Error(ErrorCode::kCorrupt, concat(checkpoint, "/", name, ": ", values.size(),
                                            " numbers, the manifest describes ", expected));
  }
  return values;
}

std::int64_t rows_per_block(const Manifest::Table& table) {
  return std::max<std::int64_t>(1, kBlockBytes / table.row_bytes) * table.row_bytes;
}

void load_tables(const std::string& checkpoint, const Manifest& manifest, Model& model) {
  if (manifest.tables.size() != model.tables.size()) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(checkpoint, ": has ", manifest.tables.size(), " tables, the configuration ",
                       model.tables.size()));
  }
  for (std::size_t i = 0; i < model.tables.size(); ++i) {
    const Manifest::Table& saved = manifest.tables[i];
    ps::Table& table = *model.tables[i];
    const std::string optimizer = optimizer_name(table.spec().optimizer.type);
    if (saved.name == table.spec().name && saved.optimizer != optimizer) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(checkpoint, ": table '", saved.name, "' was trained with optimizer ",
                         saved.optimizer, ", the configuration says ", optimizer));
    }
    if (saved.name != table.spec().name || saved.dim != table.spec().dim ||
        saved.row_bytes != table.row_bytes()) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(checkpoint, ": table '", saved.name, "' with rows of ", saved.dim,
                         " weights (", saved.row_bytes,
                         " bytes with optimizer state); the configuration has '", table.spec().name,
                         "' with ", table.spec().dim, " (", table.row_bytes(), " bytes)"));
    }
    read_checked(checkpoint, saved.file, manifest, rows_per_block(saved),
                 [&](std::span<const std::byte> rows) { table.restore(rows); });
  }
}

void load_dense(const std::string& checkpoint, const Manifest& manifest, Model& model) {
  auto state = model.network->state();
  std::int64_t total = 0;
  for (std::size_t i = 0; i < std::max(state.size(), manifest.dense.size()); ++i) {
    const bool same = i < state.size() && i < manifest.dense.size() &&
                      state[i].name == manifest.dense[i].name &&
                      state[i].shape == manifest.dense[i].shape;
    if (!same) {
      const std::string name = i < manifest.dense.size() ? manifest.dense[i].name : state[i].name;
      throw Error(ErrorCode::kInvalidConfig,
                  concat(checkpoint, ": dense tensor '", name,
                         "' does not fit the configured model or its optimizer"));
    }
    total += manifest.dense[i].size();
  }
  const std::vector<float> values = read_floats(checkpoint, kDenseFile, manifest, total);
  auto next = values.begin();
  for (auto& tensor : state) {
    std::copy_n(next, tensor.values.size(), tensor.values.begin());
    next += std::ssize(tensor.values);
  }
}

std::vector<PendingLookup> read_pending(const std::string& checkpoint, const Manifest& manifest) {
  std::int64_t total = 0;
  for (const auto& p : manifest.pending) total += p.pooled + p.mask;
  const std::vector<float> values = read_floats(checkpoint, kPendingFile, manifest, total);
  std::vector<PendingLookup> pending;
  auto next = values.begin();
  for (const auto& p : manifest.pending) {
    pending.push_back({p.step,
                       p.read_version,
                       {next, next + p.pooled},
                       {next + p.pooled, next + p.pooled + p.mask}});
    next += p.pooled + p.mask;
  }
  return pending;
}

/// Runs `body`; an Error(kCorrupt) of it leaves with the newest older intact checkpoint named.
template <class Body>
auto offering_previous(const std::string& checkpoint, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    const std::filesystem::path path(checkpoint);
    std::string offer = "; there is no older checkpoint";
    const std::string parent = path.parent_path().string();
    std::vector<std::string> older;
    for (const std::string& name : list_directory(parent.empty() ? "." : parent)) {
      if (name.starts_with("step-") && name < path.filename().string()) older.push_back(name);
    }
    if (!older.empty()) {
      std::sort(older.begin(), older.end());
      offer = concat("; the previous checkpoint is ", (path.parent_path() / older.back()).string(),
                     " (--resume-from continues there)");
    }
    throw Error(ErrorCode::kCorrupt, error.what() + offer);
  }
}

std::string digest_of(const std::string& checkpoint) {
  const Manifest manifest = Manifest::read(checkpoint);
  std::uint64_t digest = hash64(static_cast<std::uint64_t>(manifest.step));
  for (const auto& [name, file] : manifest.files) {
    const auto table = std::find_if(manifest.tables.begin(), manifest.tables.end(),
                                    [&](const auto& t) { return t.file == name; });
    if (table == manifest.tables.end()) {
      std::uint64_t hash = hash_bytes(name);
      read_checked(checkpoint, name, manifest, kBlockBytes, [&](std::span<const std::byte> block) {
        hash =
            hash64(hash, hash_bytes({reinterpret_cast<const char*>(block.data()), block.size()}));
      });
      digest = hash64(digest, hash);
      continue;
    }
    std::uint64_t rows = hash_bytes(table->name);  // a sum: the order of the rows does not count
    read_checked(
        checkpoint, name, manifest, rows_per_block(*table), [&](std::span<const std::byte> block) {
          const auto row_bytes = static_cast<std::size_t>(table->row_bytes);
          for (std::size_t at = 0; at + row_bytes <= block.size(); at += row_bytes) {
            rows += hash_bytes({reinterpret_cast<const char*>(block.data()) + at, row_bytes});
          }
        });
    digest = hash64(digest, rows);
  }
  return to_hex(digest);
}

}  // namespace

std::string read_transforms(const std::string& checkpoint) {
  return offering_previous(checkpoint, [&] {
    const Manifest manifest = Manifest::read(checkpoint);
    std::string text;
    read_checked(checkpoint, kTransformsFile, manifest, kBlockBytes,
                 [&](std::span<const std::byte> block) {
                   text.append(reinterpret_cast<const char*>(block.data()), block.size());
                 });
    return text;
  });
}

RestoredState load_checkpoint(const std::string& checkpoint, Model& model) {
  return offering_previous(checkpoint, [&] {
    RestoredState state;
    state.manifest = Manifest::read(checkpoint);
    load_tables(checkpoint, state.manifest, model);
    load_dense(checkpoint, state.manifest, model);
    state.pending = read_pending(checkpoint, state.manifest);
    return state;
  });
}

std::string verify_checkpoint(const std::string& path) {
  return offering_previous(path, [&] { return digest_of(path); });
}

}  // namespace satrap::trainer
