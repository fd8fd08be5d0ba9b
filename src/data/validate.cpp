#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/data/config.h"
#include "satrap/data/schema.h"
#include "src/data/file_format.h"
#include "src/data/libsvm_fields.h"
#include "src/data/named_columns.h"
#include "src/data/topic_source.h"
#include "src/data/topic_url.h"

namespace satrap::data {
namespace {

/// Throws an error with the place of a broken rule: "train.yaml:12: data.schema.quote: ...".
class Checker {
 public:
  explicit Checker(const ConfigOrigins& origins) : origins_(origins) {}

  void require(bool holds, const std::string& key, const std::string& rule) const {
    if (holds) return;
    const auto origin = origins_.find(key);
    throw Error(ErrorCode::kInvalidConfig, origin == origins_.end()
                                               ? concat(key, ": ", rule)
                                               : concat(origin->second, ": ", key, ": ", rule));
  }

 private:
  const ConfigOrigins& origins_;
};

bool is_character(const std::string& text) {
  return (text.size() == 1 && text != "\n" && text != "\r") || text == "\\t";
}

void check_numeric(const Checker& check, const NumericConfig& input, const std::string& key) {
  check.require(!input.name.empty() || !input.column.empty(), key, "has neither name nor column");
  check.require(input.clip.empty() || (input.clip.size() == 2 && input.clip[0] <= input.clip[1]),
                key + ".clip", "must be two numbers, [low, high]");
  check.require(std::isfinite(input.fill), key + ".fill", "must be finite");
}

/// `has_lists`: the files divide the ids of a bag themselves.
void check_feature(const Checker& check,
                   const FeatureConfig& feature,
                   bool has_lists,
                   const std::string& key) {
  check.require(!feature.name.empty() || !feature.column.empty(), key,
                "has neither name nor column");
  check.require(feature.separator.empty() || is_character(feature.separator), key + ".separator",
                concat("must be one character, got '", feature.separator, "'"));
  check.require(feature.weight_separator.empty() || (is_character(feature.weight_separator) &&
                                                     feature.weight_separator != feature.separator),
                key + ".weight_separator", "must be one character, different from separator");
  check.require(feature.keep == "first" || feature.max_length > 0, key + ".keep",
                "has no effect without max_length");
  check.require(feature.max_length == 0 || has_lists || !feature.separator.empty() ||
                    !feature.columns.empty(),
                key + ".max_length", "has no effect without a separator or several columns");
  check.require(feature.columns.empty() || feature.column.empty(), key + ".columns",
                concat("replaces column, which is '", feature.column, "': leave one of them out"));
  check.require(feature.columns.empty() || !feature.name.empty(), key + ".columns",
                "a feature of several columns needs a name");
  const BucketConfig& buckets = feature.buckets;
  if (!buckets.any()) return;
  check.require(buckets.quantiles == 0 || buckets.boundaries.empty(), key + ".buckets",
                "takes either quantiles or boundaries");
  check.require(buckets.quantiles != 1, key + ".buckets.quantiles", "must be at least 2");
  check.require(std::is_sorted(buckets.boundaries.begin(), buckets.boundaries.end(),
                               [](double a, double b) { return a <= b; }),
                key + ".buckets.boundaries", "must be ascending");
  check.require(feature.type == "string" && feature.separator.empty() &&
                    feature.weight_separator.empty() && feature.columns.empty(),
                key + ".buckets",
                "a feature made from a number has no type, no separators and one column");
}

void check_label(const Checker& check, const LabelConfig& label, const std::string& key) {
  check.require(label.positive.empty() || label.threshold.empty(), key,
                "takes either positive or threshold");
  check.require(label.negative.empty() || !label.positive.empty(), key + ".negative",
                "has no effect without positive");
  check.require(label.threshold.size() <= 1, key + ".threshold", "must be one number");
}

/// The name is a column header in the output of `predict`, and a key of metrics and event files.
void check_label_name(const Checker& check, const NamedLabelConfig& label, const std::string& key) {
  const bool own = !label.name.empty();
  const std::string& name = own ? label.name : label.source.column;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  const auto bad = std::ranges::find_if(name, is_control);
  const std::string place = key + (own ? ".name" : ".column");
  check.require(!name.empty(), place, "a label without a name needs a column, got none");
  if (bad == name.end()) return;
  check.require(false, place,
                concat("a label's name has no control characters, got the byte ",
                       static_cast<int>(static_cast<unsigned char>(*bad)), " at place ",
                       bad - name.begin(), own ? "" : "; give the label its own `name`"));
}

void check_labels(const Checker& check, const SchemaConfig& schema, const std::string& key) {
  // Only a change can be detected: a resolved config writes `label` too, and must load again.
  check.require(schema.labels.empty() || schema.label == LabelConfig(), key + ".labels",
                concat("replaces label, which reads column '", schema.label.column,
                       "': leave one of them out"));
  check_label(check, schema.label, key + ".label");
  for (std::size_t i = 0; i < schema.labels.size(); ++i) {
    check_label(check, schema.labels[i].source, concat(key, ".labels.", i));
    check_label_name(check, schema.labels[i], concat(key, ".labels.", i));
  }
}

/// Whether the user has written an inline schema.
bool is_inline(const SchemaConfig& schema) {
  return !schema.numeric.empty() || !schema.features.empty() || !schema.labels.empty();
}

/// A model that reads the label has nothing to learn.
void check_inputs_are_no_labels(const Checker& check, const SchemaConfig& schema) {
  std::vector<std::string> labels;
  for (const NamedLabelConfig& label : schema.labels) labels.push_back(label.source.column);
  if (labels.empty()) labels.push_back(schema.label.column);
  const auto refuse_label = [&](const std::string& column, const std::string& key) {
    check.require(std::ranges::count(labels, column) == 0, key,
                  concat("column '", column, "' is the label's; an input must not read it"));
  };
  const auto column_of = [](const auto& input) {
    return input.column.empty() ? input.name : input.column;
  };
  for (std::size_t i = 0; i < schema.numeric.size(); ++i) {
    refuse_label(column_of(schema.numeric[i]), concat("data.schema.numeric.", i));
  }
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    const FeatureConfig& feature = schema.features[i];
    std::vector<std::string> columns = feature.columns;
    if (columns.empty()) columns.push_back(column_of(feature));
    for (const std::string& column : columns) {
      refuse_label(column, concat("data.schema.features.", i));
    }
  }
}

void check_schema(const Checker& check, const SchemaConfig& schema, bool has_lists) {
  const std::string key = "data.schema";
  check.require(is_character(schema.delimiter), key + ".delimiter",
                concat("must be one character, got '", schema.delimiter, "'"));
  check.require(schema.quote.empty() || (is_character(schema.quote) && schema.quote != "\\t" &&
                                         schema.quote != schema.delimiter),
                key + ".quote", "must be one character, different from delimiter, or empty");
  check.require(!schema.header || schema.columns.empty(), key + ".columns",
                "is for files without a header; add header: false");
  check_labels(check, schema, key);
  check_inputs_are_no_labels(check, schema);
  check.require(!schema.numeric.empty() || !schema.features.empty(), key,
                "has neither numeric nor features: nothing to learn from");
  for (std::size_t i = 0; i < schema.numeric.size(); ++i) {
    check_numeric(check, schema.numeric[i], concat(key, ".numeric.", i));
  }
  for (std::size_t i = 0; i < schema.features.size(); ++i) {
    check_feature(check, schema.features[i], has_lists, concat(key, ".features.", i));
  }
}

/// The format of all files, if they are of one.
std::optional<FileFormat> common_format(const DataConfig& config) {
  std::optional<FileFormat> common;
  for (const FilesConfig* files : {&config.train, static_cast<const FilesConfig*>(&config.eval)}) {
    for (const std::string& path : files->path) {
      const FileFormat format = format_of(config.format, path);
      if (common.value_or(format) != format) return std::nullopt;
      common = format;
    }
  }
  return common;
}

/// Of files that are all of a format which names its values.
void check_named_schema(const Checker& check, const SchemaConfig& schema, FileFormat format) {
  const SchemaConfig plain;
  const auto refuse = [&](bool is_plain, const std::string& key) {
    check.require(is_plain, "data.schema." + key,
                  concat("has no effect on ", name_of(format),
                         ", which names its columns and divides its values itself"));
  };
  refuse(schema.delimiter == plain.delimiter, "delimiter");
  refuse(schema.quote == plain.quote, "quote");
  refuse(schema.decimal == plain.decimal, "decimal");
  refuse(schema.header == plain.header, "header");
  refuse(schema.columns == plain.columns, "columns");
}

/// Columns that these formats do not have.
void check_libsvm_columns(const Schema& schema, FileFormat format) {
  const NamedColumns columns(schema);
  if (format == FileFormat::kLibsvm) LibsvmFields(schema, columns);
  if (format == FileFormat::kLibffm) LibffmFields(schema, columns);
}

bool is_topic(const std::string& path) { return path.starts_with(TopicUrl::kScheme); }

void check_part(const Checker& check, const DataConfig& config) {
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

void check_properties(const Checker& check, const KafkaConfig& kafka) {
  const std::string key = "data.kafka.properties";
  for (const std::string& property : kafka.properties) {
    const std::size_t equals = property.find('=');
    const std::string name = property.substr(0, equals);
    check.require(equals != std::string::npos && equals > 0, key,
                  concat("'", is_secret(name) ? "a secret" : name, "' must be name=value"));
    const std::string value = property.substr(equals + 1);
    check.require(!is_secret(name) || (value.starts_with("${") && value.ends_with('}')), key,
                  concat(name, " is a secret, and this file and checkpoints would show it: write ",
                         name, "=${NAME} and set NAME in the environment"));
    for (const char* const own :
         {"bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit",
          "enable.auto.offset.store", "enable.partition.eof", "auto.offset.reset"}) {
      check.require(name != own, key,
                    concat(name, " cannot be set: satrap decides what is read, and from where (",
                           "data.train.path, data.kafka.start, data.kafka.group)"));
    }
  }
}

void check_topic(const Checker& check, const DataConfig& config) {
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
  const std::string format = config.resolved_format();
  const FileFormat of_messages = format_of_topic(config);
  if (format == "csv" && of_messages == FileFormat::kDelimited) {
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

void check_no_topic(const Checker& check, const KafkaConfig& kafka) {
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

void check_loaders(const Checker& check, const DataConfig& config) {
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
  require_files(config.resolved_format() != "synthetic", "synthetic rows are generated");
  require_files(std::ranges::find(config.train.path, "-") == config.train.path.end(),
                "standard input is that of one process");
}

void check_cache(const Checker& check, const CacheConfig& cache) {
  std::int64_t max_bytes = 0;
  try {
    max_bytes = cache.max_bytes();
  } catch (const Error& error) {
    check.require(false, "data.cache.max_size", error.what());
  }
  check.require(max_bytes == 0 || cache.is_on(), "data.cache.max_size",
                "has no effect without data.cache.folder");
}

void check_files(const Checker& check, const DataConfig& config) {
  const auto uses_stdin = [](const FilesConfig& files) {
    return std::find(files.path.begin(), files.path.end(), "-") != files.path.end();
  };
  check.require(!config.train.path.empty(), "data.train.path", "is not set");
  const FilesConfig& eval = config.eval;
  for (const FilesConfig* files : {&config.train, &eval}) {
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
}

void check_synthetic(const Checker& check, const DataConfig& config) {
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
  check_no_topic(check, config.kafka);
  check.require(!config.cache.is_on(), "data.cache.folder", "has no effect with format synthetic");
  check.require(!config.eval.is_part(), "data.eval.fraction",
                "has no effect with format synthetic; write synthetic.eval_rows");
}

}  // namespace

void validate(const DataConfig& config, const ConfigOrigins& origins) {
  const Checker check(origins);
  const std::string format = config.resolved_format();
  if (format == "synthetic") {
    check_synthetic(check, config);
  } else {
    check_files(check, config);
    const FileFormat files = common_format(config).value_or(FileFormat::kDelimited);
    const bool is_named = files != FileFormat::kDelimited;
    if (config.schema_name.empty() && is_named) check_named_schema(check, config.schema, files);
    if (format == "criteo") {
      check.require(config.schema_name == "criteo" || !is_inline(config.schema), "data.schema",
                    "format criteo has its own schema; for another one use format csv");
    } else {
      const bool may_be_criteo = format != "csv" && config.schema_name == "criteo";
      check.require(config.schema_name.empty() || may_be_criteo, "data.schema",
                    concat("'", config.schema_name, "' cannot be used with format ", format));
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
  if (format != "synthetic") {
    check_libsvm_columns(schema, common_format(config).value_or(FileFormat::kDelimited));
  }
}

}  // namespace satrap::data
