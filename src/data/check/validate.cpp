#include "satrap/data/validate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/schema.h"
#include "src/data/check/config_checker.h"
#include "src/data/check/validate_schema.h"
#include "src/data/rows/comparison.h"
#include "src/data/rows/row_selection.h"
#include "src/data/terms/file_format.h"
#include "src/data/terms/topic_url.h"
#include "src/data/text/libsvm_fields.h"
#include "src/data/text/named_columns.h"
#include "src/data/topic/topic_source.h"

namespace satrap::data {
namespace {

/// Whether the user has written an inline schema.
bool is_inline(const SchemaConfig& schema) {
  return !schema.numeric.empty() || !schema.features.empty() || !schema.labels.empty() ||
         !schema.weight.empty() || schema.label != LabelConfig();
}

std::array<const FilesConfig*, 2> files_of(const DataConfig& config) {
  return {&config.train, &config.eval};
}

/// The format of all files, if they are of one.
std::optional<FileFormat> common_format(const DataConfig& config) {
  std::optional<FileFormat> common;
  for (const FilesConfig* files : files_of(config)) {
    for (const std::string& path : files->path) {
      const FileFormat format = format_of(config.format, path);
      if (common.value_or(format) != format) return std::nullopt;
      common = format;
    }
  }
  return common;
}

/// Columns that these formats do not have.
void check_libsvm_columns(const Schema& schema, FileFormat format) {
  const NamedColumns columns(schema);
  if (format == FileFormat::kLibsvm) LibsvmFields(schema, columns);
  if (format == FileFormat::kLibffm) LibffmFields(schema, columns);
}

bool is_topic(const std::string& path) { return path.starts_with(TopicUrl::kScheme); }

void check_conditions(const ConfigChecker& check, const DataConfig& config) {
  const EvalConfig& eval = config.eval;
  check.require(eval.where.empty() || !eval.is_part(), "data.eval.where",
                "has no effect on a fraction of the training rows; write data.train.where, which "
                "holds for both");
  check.require(
      eval.where.empty() || !eval.path.empty(), "data.eval.where",
      "has no effect without data.eval.path, which may name the files of data.train.path");
  for (const FilesConfig* files : files_of(config)) {
    if (files->where.empty()) continue;
    try {
      parse_comparisons(files->where, /*has_decimal_comma=*/false);
    } catch (const Error& error) {
      check.require(false, files == &eval ? "data.eval.where" : "data.train.where", error.what());
    }
  }
}

void check_part(const ConfigChecker& check, const DataConfig& config) {
  const EvalConfig& eval = config.eval;
  if (!eval.is_part()) {
    check.require(eval.by == EvalConfig().by, "data.eval.by", "has no effect without fraction");
    return;
  }
  check.require(eval.path.empty(), "data.eval",
                "takes either path, files for evaluation alone, or fraction, a share of the "
                "training rows");
  check.require(eval.max_rows == 0, "data.eval.max_rows",
                "has no effect on a fraction of the training rows; write a smaller fraction");
  check.require(!eval.by.empty(), "data.eval.by", "must be tail, hash or a column");
  check.require(config.train.path.front() != "-", "data.eval.fraction",
                "needs training data that can be read again, and standard input cannot; write the "
                "rows to a file");
}

bool is_secret(const std::string& property) {
  return property.find("password") != std::string::npos ||
         property.find("secret") != std::string::npos || property == "ssl.key.pem" ||
         property == "sasl.oauthbearer.config";
}

/// Whether librdkafka would load or call what the property names.
bool names_code(const std::string& property) {
  return property.starts_with("plugin.") || property.starts_with("ssl.engine") ||
         property == "ssl.providers" || property == "sasl.kerberos.kinit.cmd";
}

/// Checks names and paths that librdkafka puts into a command of the shell.
bool is_plain_word(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._@-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

void check_properties(const ConfigChecker& check, const KafkaConfig& kafka) {
  const std::string key = "data.kafka.properties";
  for (const std::string& property : kafka.properties) {
    const std::size_t equals = property.find('=');
    const std::string name = property.substr(0, equals);
    check.require(equals != std::string::npos && equals > 0, key,
                  concat("'", is_secret(name) ? "a secret" : name, "' must be name=value"));
    const std::string value = property.substr(equals + 1);
    check.require(!names_code(name), key,
                  concat(name, " cannot be set: it names code, and a configuration runs none"));
    check.require(!name.starts_with("sasl.kerberos.") || is_plain_word(value), key,
                  concat(name,
                         " becomes part of a command: it may have letters, digits and /._@-, "
                         "got '",
                         value, "'"));
    try {
      check_environment_names(value);
    } catch (const Error& error) {
      check.require(false, key, error.what());
    }
    check.require(!is_secret(name) || (value.starts_with("${") && value.ends_with('}')), key,
                  concat(name, " is a secret, and this file and checkpoints would show it: write ",
                         name, "=${KAFKA_NAME} and set KAFKA_NAME in the environment"));
    for (const char* const own :
         {"bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit",
          "enable.auto.offset.store", "enable.partition.eof", "auto.offset.reset"}) {
      check.require(name != own, key,
                    concat(name, " cannot be set: satrap decides what is read, and from where (",
                           "data.train.path, data.kafka.start, data.kafka.group)"));
    }
  }
}

void check_topic(const ConfigChecker& check, const DataConfig& config) {
  const KafkaConfig& kafka = config.kafka;
  const std::string path = "data.train.path";
  check.require(config.train.path.size() == 1, path, "a topic cannot be combined with other data");
  try {
    TopicUrl::parse(config.train.path.front());
  } catch (const Error& error) {
    check.require(false, path, error.what());
  }
  try {
    if (kafka.start != "earliest" && kafka.start != "latest") parse_utc_time(kafka.start);
  } catch (const Error& error) {
    check.require(false, "data.kafka.start", concat(error.what(), ", nor earliest or latest"));
  }
  check.require(kafka.is_endless() || kafka.start != "latest", "data.kafka.start",
                "latest leaves nothing to read up to the watermark: write end: never");
  try {
    check.require(parse_duration(kafka.timeout) > 0, "data.kafka.timeout", "must be positive");
  } catch (const Error& error) {
    check.require(false, "data.kafka.timeout", error.what());
  }
  check_properties(check, kafka);
  const FileFormat of_messages = format_of_topic(config);
  if (config.resolved_format() == DataFormat::kCsv && of_messages == FileFormat::kDelimited) {
    check.require(!config.schema.header, "data.schema.header",
                  "messages of a topic have no header: write header: false, and the names of the "
                  "columns in data.schema.columns; or, if they are JSON, data.format: json");
    check.require(!config.schema.columns.empty(), "data.schema.columns",
                  "must name the columns of the messages, which have no header; or, if they are "
                  "JSON, write data.format: json");
  }
  check.require(!config.eval.is_part(), "data.eval.fraction",
                "needs files for training: of a topic no part is kept; write data.eval.path");
  check.require(!kafka.is_endless() || config.shuffle_rows == 0, "data.shuffle_rows",
                "a topic without an end cannot be shuffled, since its rows could not be found "
                "again: write 0, or data.kafka.end: watermark");
}

void check_no_topic(const ConfigChecker& check, const KafkaConfig& kafka) {
  const KafkaConfig plain;
  const auto refuse = [&](bool is_plain, const char* key) {
    check.require(is_plain, concat("data.kafka.", key),
                  "has no effect without a topic, data.train.path: kafka://host:9092/topic");
  };
  refuse(kafka.start == plain.start, "start");
  refuse(kafka.end == plain.end, "end");
  refuse(kafka.group == plain.group, "group");
  refuse(kafka.timeout == plain.timeout, "timeout");
  refuse(kafka.properties == plain.properties, "properties");
}

void check_loaders(const ConfigChecker& check, const DataConfig& config) {
  const LoadersConfig& loaders = config.loaders;
  try {
    check.require(parse_duration(loaders.timeout) > 0, "data.loaders.timeout", "must be positive");
  } catch (const Error& error) {
    check.require(false, "data.loaders.timeout", error.what());
  }
  if (!loaders.is_on()) return;
  const auto require_files = [&](bool has_files, const char* what) {
    check.require(has_files, "data.loaders.store",
                  concat("loaders read files and topics, and ", what, ": leave it empty"));
  };
  require_files(!config.is_synthetic(), "synthetic rows are generated");
  require_files(std::ranges::find(config.train.path, "-") == config.train.path.end(),
                "standard input is that of one process");
}

void check_cache(const ConfigChecker& check, const CacheConfig& cache) {
  std::int64_t max_bytes = 0;
  try {
    max_bytes = cache.max_bytes();
  } catch (const Error& error) {
    check.require(false, "data.cache.max_size", error.what());
  }
  check.require(max_bytes == 0 || cache.is_on(), "data.cache.max_size",
                "has no effect without data.cache.folder");
}

void check_files(const ConfigChecker& check, const DataConfig& config) {
  const auto uses_stdin = [](const FilesConfig& files) {
    return std::find(files.path.begin(), files.path.end(), "-") != files.path.end();
  };
  check.require(!config.train.path.empty(), "data.train.path", "is not set");
  for (const FilesConfig* files : files_of(config)) {
    const std::string key = files == &config.train ? "data.train.path" : "data.eval.path";
    check.require(std::find(files->path.begin(), files->path.end(), "") == files->path.end(), key,
                  "has an empty name");
    check.require(files == &config.train || std::ranges::none_of(files->path, is_topic), key,
                  "evaluation and prediction read files, not topics of Kafka; write rows of the "
                  "topic to a file");
    check.require(!uses_stdin(*files) || files->path.size() == 1, key,
                  "standard input ('-') cannot be combined with other files");
  }
  check.require(!uses_stdin(config.train) || !uses_stdin(config.eval), "data.eval.path",
                "standard input ('-') is taken by data.train.path");
  if (std::ranges::any_of(config.train.path, is_topic)) {
    check_topic(check, config);
  } else {
    check_no_topic(check, config.kafka);
  }
  check.require(
      !config.cache.is_on() ||
          (!uses_stdin(config.train) && std::ranges::none_of(config.train.path, is_topic)),
      "data.cache.folder", "needs training files, not a topic or standard input: write \"\"");
  check.require(!config.cache.is_on() || !config.loaders.is_on(), "data.cache.folder",
                "holds rows that this process parses, and data.loaders has others parse them: "
                "write one of the two");
  check_part(check, config);
  check_conditions(check, config);
}

void check_synthetic(const ConfigChecker& check, const DataConfig& config) {
  config.synthetic.validate("data.synthetic");
  const bool criteo_shape =
      config.synthetic.num_numeric == 13 && config.synthetic.num_features() == 26;
  check.require(config.schema.labels.empty(), "data.schema.labels",
                "a synthetic log has one label");
  check.require(config.schema_name.empty() ? !is_inline(config.schema)
                                           : config.schema_name == "criteo" && criteo_shape,
                "data.schema",
                concat("a synthetic log has its own columns, I1..I", config.synthetic.num_numeric,
                       " and C1..C", config.synthetic.num_features()));
  const bool unknown_group =
      !config.group_by.empty() && resolve_schema(config).group_feature == Schema::kGroups;
  check.require(!unknown_group, "data.group_by",
                concat("a synthetic log has no feature '", config.group_by, "'"));
  check.require(config.train.path.empty(), "data.train.path",
                "has no effect with format synthetic");
  check.require(config.eval.path.empty(), "data.eval.path", "has no effect with format synthetic");
  check.require(config.train.where.empty(), "data.train.where",
                "has no effect with format synthetic");
  check.require(config.eval.where.empty(), "data.eval.where",
                "has no effect with format synthetic");
  check.require(config.train.negatives == 1.0, "data.train.negatives",
                "has no effect with format synthetic");
  check.require(config.train.negatives_in_files == 1.0, "data.train.negatives_in_files",
                "has no effect with format synthetic");
  check_no_topic(check, config.kafka);
  check.require(!config.cache.is_on(), "data.cache.folder", "has no effect with format synthetic");
  check.require(!config.eval.is_part(), "data.eval.fraction",
                "has no effect with format synthetic; write synthetic.eval_rows");
}

}  // namespace

void validate(const DataConfig& config, const ConfigOrigins& origins) {
  const ConfigChecker check(origins);
  const DataFormat format = config.resolved_format();
  if (config.is_synthetic()) {
    check_synthetic(check, config);
  } else {
    check_files(check, config);
    const FileFormat files = common_format(config).value_or(FileFormat::kDelimited);
    const bool is_named = files != FileFormat::kDelimited;
    if (config.schema_name.empty() && is_named) check_named_schema(check, config.schema, files);
    if (format == DataFormat::kCriteo) {
      check.require(config.schema_name == "criteo" || !is_inline(config.schema), "data.schema",
                    "format criteo has its own schema; for another one use format csv");
    } else {
      const bool may_be_criteo = format != DataFormat::kCsv && config.schema_name == "criteo";
      check.require(config.schema_name.empty() || may_be_criteo, "data.schema",
                    concat("'", config.schema_name, "' cannot be used with format ",
                           word_of(format, kDataFormats)));
      if (config.schema_name.empty()) check_schema(check, config.schema, is_named);
    }
  }
  check_loaders(check, config);
  check_cache(check, config.cache);
  try {
    config.bad_row_limit();
  } catch (const Error& error) {
    check.require(false, "data.max_bad_rows", error.what());
  }
  const Schema schema = resolve_schema(config);  // names that clash, ranges that do not match
  if (!config.is_synthetic()) {
    for (const Role role : {Role::kTrain, Role::kEval}) {
      check_libsvm_columns(schema_of_role(schema, config, role),
                           common_format(config).value_or(FileFormat::kDelimited));
    }
  }
}

}  // namespace satrap::data
