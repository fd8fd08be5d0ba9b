#include "src/data/cache/parsed_row_cache.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/hash.h"
#include "satrap/core/log.h"
#include "satrap/core/text.h"
#include "satrap/data/file_prefix.h"
#include "src/data/cache/parsed_rows.h"

namespace satrap::data {
namespace {

/// The files as they are now. Empty: one is missing, and its reader will say so.
std::vector<DataFile> current(const std::vector<DataFile>& files) {
  std::vector<DataFile> now;
  try {
    for (const DataFile& file : files) {
      now.push_back(describe_file(file.path));
      now.back().checksum = examine_prefix(file.path, now.back().bytes).checksum;
    }
  } catch (const Error&) {
    return {};
  }
  return now;
}

/// The first file that is not what it was; "": all are the same.
std::string first_changed(const std::vector<DataFile>& before, const std::vector<DataFile>& now) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    const DataFile &a = before[i], &b = now[i];
    if (a.path != b.path || a.bytes != b.bytes || a.modified_ns != b.modified_ns) return b.path;
    if (a.was_opened() && a.checksum != b.checksum) return b.path;
  }
  return "";
}

std::string size_of(std::int64_t rows, std::int64_t bytes) {
  return concat(with_commas(rows), " rows, ", format_bytes(bytes), ", ",
                rows == 0 ? 0 : bytes / rows, " bytes per row");
}

}  // namespace

std::string parsing_of(const Schema& schema) {
  SchemaConfig text = schema.text;
  text.labels = schema.labels;
  for (NamedLabelConfig& label : text.labels) {
    label.name = "";
    label.weight = label.source.positive_weight = 1.0;
  }
  text.label = {};
  text.numeric.clear();
  for (const Schema::RawNumber& number : schema.raw_numeric) {
    text.numeric.emplace_back().column = number.column;
    if (number.is_time) text.numeric.back().since = "1970";  // which makes it another number
  }
  text.features.clear();
  for (const Schema::IdColumn& column : schema.id_columns) {
    text.features.push_back(column.config);
    text.features.back().name = "";
  }
  if (schema.crosses.empty()) return dump_config(text);
  for (FeatureConfig feature : schema.text.features) {  // they say which rows have too many pairs
    feature.zone = "";
    text.features.push_back(std::move(feature));
  }
  return dump_config(text);
}

ParsedRowCache::ParsedRowCache(Options options)
    : options_(std::move(options)),
      space_(options_.config.folder, options_.config.max_bytes(), options_.caches) {
  std::error_code error;
  const std::string& folder = options_.config.folder;
  if (!std::filesystem::is_directory(folder, error)) ensure_directory(folder);
}

std::string ParsedRowCache::path_of(const RowPass& pass, std::int64_t begin_row) const {
  std::string identity = concat(options_.identity, "rows: ", begin_row, ' ', pass.max_rows, '\n');
  for (const DataFile& file : options_.files.files) identity += concat(file.path, '\n');
  const RowSplit& split = pass.split;
  if (split.world_size > 1) {
    identity += concat("rank: ", split.rank, ' ', split.world_size, ' ', split.rows_per_turn, '\n');
  }
  return concat(options_.config.folder, '/', options_.rows, '-', to_hex(hash_bytes(identity)),
                ".rows");
}

std::unique_ptr<RowBlockSource> ParsedRowCache::open(const Schema& schema,
                                                     const RowPass& pass,
                                                     std::int64_t begin_row,
                                                     const ParsePass& parse) {
  std::vector<DataFile> now = current(options_.files.files);
  if (now.empty()) return parse(pass);
  const std::string path = path_of(pass, begin_row);
  const std::shared_ptr<ParsedRowFile> file = find(path, now);
  options_.caches->keep(path, file);
  if (file) {
    return std::make_unique<ParsedRows>(schema, file, pass, begin_row, options_.files.total_bytes,
                                        parse, options_.bad_rows, options_.records);
  }
  const bool is_whole = pass.first_row <= begin_row;
  if (!options_.writes || !is_whole || space_.has_refused(path)) return parse(pass);
  return write(path, pass, parse(pass), std::move(now));
}

std::shared_ptr<ParsedRowFile> ParsedRowCache::find(const std::string& path,
                                                    const std::vector<DataFile>& now) const {
  std::error_code unknown;
  const bool may_exist = std::filesystem::exists(path, unknown) || unknown;
  if (!may_exist) return nullptr;
  try {
    auto file = std::make_shared<ParsedRowFile>(path);
    const std::string changed = first_changed(file->files(), now);
    if (!changed.empty()) {
      log_info("data.cache: '{}' ({}) is of '{}' as it was before; the rows are parsed again",
               shown_path(path), size_of(file->num_rows(), file->num_bytes()), changed);
      return nullptr;
    }
    file->mark_used();
    space_.trim();
    log_debug("data.cache: {} rows come from '{}' ({})", options_.rows, shown_path(path),
              size_of(file->num_rows(), file->num_bytes()));
    return file;
  } catch (const Error& error) {
    log_warning("data.cache: '{}' is not used: {}; the rows are parsed again", shown_path(path),
                error.what());
    return nullptr;
  }
}

std::unique_ptr<RowBlockSource> ParsedRowCache::write(const std::string& path,
                                                      const RowPass& pass,
                                                      std::unique_ptr<RowBlockSource> rows,
                                                      std::vector<DataFile> now) {
  std::unique_ptr<ParsedRowWriter> writer;
  try {
    writer = ParsedRowWriter::open(path, space_);
  } catch (const Error& error) {
    log_warning("data.cache: {} rows are not cached: {}", options_.rows, error.what());
    return rows;
  }
  if (!writer) {
    log_info("data.cache: another run is writing '{}': this one parses", shown_path(path));
    return rows;
  }
  const auto finish = [this, path, now = std::move(now)](ParsedRowWriter& complete) {
    const std::string changed = first_changed(now, current(now));
    if (!changed.empty()) {
      throw Error(ErrorCode::kIo, concat("'", changed, "' has changed while it was read"));
    }
    complete.finish(options_.records ? options_.records->files() : now);
    options_.caches->keep(path, std::make_shared<ParsedRowFile>(path));
    log_info("data.cache: {} rows are now in '{}' ({})", options_.rows, shown_path(path),
             size_of(complete.num_rows(), complete.num_bytes()));
  };
  return std::make_unique<KeptParsedRows>(std::move(rows), std::move(writer), pass.max_rows,
                                          options_.bad_rows, finish);
}

}  // namespace satrap::data
