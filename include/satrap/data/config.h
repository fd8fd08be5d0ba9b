#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/data/label_config.h"
#include "satrap/data/synthetic_config.h"

namespace satrap::data {

/// What happens to a number before the dense network gets it.
enum class Transform { kNone, kLog1p, kZscore, kLog1pZscore };
inline constexpr Choice<Transform> kTransforms[] = {{"none", Transform::kNone},
                                                    {"log1p", Transform::kLog1p},
                                                    {"zscore", Transform::kZscore},
                                                    {"log1p_zscore", Transform::kLog1pZscore}};
constexpr bool takes_log1p(Transform transform) {
  return transform == Transform::kLog1p || transform == Transform::kLog1pZscore;
}
constexpr bool takes_zscore(Transform transform) {
  return transform == Transform::kZscore || transform == Transform::kLog1pZscore;
}

/// What the time between two columns is counted in.
enum class AgeUnit { kSecond, kMinute, kHour, kDay };
inline constexpr Choice<AgeUnit> kAgeUnits[] = {{"s", AgeUnit::kSecond},
                                                {"min", AgeUnit::kMinute},
                                                {"h", AgeUnit::kHour},
                                                {"d", AgeUnit::kDay}};

/// A number that becomes one input of the dense network, or two with a missing indicator. A name
/// like "I1..I13" means thirteen of them.
struct NumericConfig {
  static constexpr std::string_view kPlain = "name";

  std::string name = "";    // of the input; empty: that of the column
  std::string column = "";  // empty: the name
  std::string since = "";   // the number is the time from that of this column; empty: it is no age
  AgeUnit unit = AgeUnit::kDay;
  Transform transform = Transform::kNone;
  std::vector<double> clip = {};   // [low, high] of the value as read; empty: none
  double fill = 0.0;               // replaces a missing value, after the transform
  bool missing_indicator = false;  // adds an input that is 1 if the value is missing
  void visit(ConfigVisitor& v);
  bool is_age() const { return !since.empty(); }
};

/// Ranges of a number that become the ids 0, 1, 2 ... of a feature.
struct BucketConfig {
  std::int64_t quantiles = 0;           // this many ranges of about equal share; 0: none
  std::vector<double> boundaries = {};  // ascending; range i starts at boundary i-1
  void visit(ConfigVisitor& v);
  bool any() const { return quantiles > 0 || !boundaries.empty(); }
};

/// How an id is written.
enum class IdType { kString, kInt, kHex };
inline constexpr Choice<IdType> kIdTypes[] = {{"string", IdType::kString},
                                              {"int", IdType::kInt},
                                              {"hex", IdType::kHex}};

/// The ids that are kept of a bag that is too long.
enum class KeptIds { kFirst, kLast };
inline constexpr Choice<KeptIds> kKeptIds[] = {{"first", KeptIds::kFirst},
                                               {"last", KeptIds::kLast}};

/// What a missing value becomes: an empty bag, or an id of its own.
enum class MissingId { kEmpty, kOwnId };
inline constexpr Choice<MissingId> kMissingIds[] = {{"empty", MissingId::kEmpty},
                                                    {"own_id", MissingId::kOwnId}};

/// What of a time is the id of a feature: the hour 0 to 23, the day of the week from Monday, 0, or
/// the day of the month from 1.
enum class DatePart { kNone, kHour, kWeekday, kMonthDay };
inline constexpr Choice<DatePart> kDateParts[] = {{"none", DatePart::kNone},
                                                  {"hour", DatePart::kHour},
                                                  {"weekday", DatePart::kWeekday},
                                                  {"month_day", DatePart::kMonthDay}};

/// A categorical input: a bag or sequence of ids. A name like "C1..C26" means 26 of them.
struct FeatureConfig {
  static constexpr std::string_view kPlain = "name";

  std::string name = "";                  // empty: that of the column
  std::string column = "";                // empty: the name
  std::vector<std::string> columns = {};  // instead of column: each holds ids of the bag
  IdType type = IdType::kString;
  std::string separator = "";         // between the ids of a bag; empty: one id
  std::string weight_separator = "";  // between an id and its weight; empty: no weights
  std::int64_t max_length = 0;        // ids kept of a bag; 0: all
  KeptIds keep = KeptIds::kFirst;
  MissingId missing = MissingId::kEmpty;
  BucketConfig buckets = {};            // the column is a number, cut into ranges
  DatePart part = DatePart::kNone;      // the column is a time, and the id a part of it
  std::string zone = "UTC";             // whose clocks say the part
  std::vector<std::string> cross = {};  // two earlier features, whose pairs of ids are the ids
  void visit(ConfigVisitor& v);
  bool is_date_part() const { return part != DatePart::kNone; }
  bool is_cross() const { return !cross.empty(); }
};

/// How values become ids and inputs, of which jobs have that of their time: 1 until satrap 0.1,
/// 2 from then on. SchemaConfig::visit tells the difference.
inline constexpr std::int64_t kValueRule = 2;

/// The character before the fraction of a number in text.
enum class Decimal { kPoint, kComma };
inline constexpr Choice<Decimal> kDecimals[] = {{".", Decimal::kPoint}, {",", Decimal::kComma}};

/// The meaning of the columns of a text file. `missing` and empty fields are missing values.
struct SchemaConfig {
  std::string delimiter = ",";
  std::string quote = "\"";  // empty: quotes have no meaning
  Decimal decimal = Decimal::kPoint;
  bool header = true;
  std::vector<std::string> columns = {};  // names, for files without a header
  bool trim = true;                       // drop spaces around a field
  std::vector<std::string> missing = {};
  LabelConfig label;                          // for a model of one label
  std::vector<NamedLabelConfig> labels = {};  // for a model of several; empty: `label`
  std::string weight = "";                    // column of the rows' weights; empty: all are 1
  std::vector<NumericConfig> numeric;
  std::vector<FeatureConfig> features;
  std::int64_t value_rule = kValueRule;
  void visit(ConfigVisitor& v);

  /// Rule 1 rounds numbers before they are compared and transformed.
  bool rounds_numbers() const { return value_rule == 1; }
  double rounded(double x) const {
    return rounds_numbers() ? static_cast<double>(static_cast<float>(x)) : x;
  }
};

/// The files of training or evaluation.
struct FilesConfig {
  static constexpr std::string_view kPlain = "path";

  std::vector<std::string> path = {};  // files, globs, or "-" for standard input
  std::int64_t max_rows = 0;           // read only the first rows; 0: all
  std::string where = "";              // of these, those for which this holds; "": all
  void visit(ConfigVisitor& v);
};

/// The files of training, whose negatives may be too many.
struct TrainFilesConfig : FilesConfig {
  double negatives = 1.0;           // the share of them that is read
  double negatives_in_files = 1.0;  // the share of them that the files have
  void visit(ConfigVisitor& v);
};

/// The evaluation data: files of their own, or a part of the training files' rows.
struct EvalConfig : FilesConfig {
  double fraction = 0.0;    // of the rows; 0: no part
  std::string by = "tail";  // tail | hash | a column
  void visit(ConfigVisitor& v);

  bool is_part() const { return fraction > 0.0; }
  bool by_tail() const { return is_part() && by == "tail"; }
  bool by_column() const { return is_part() && by != "tail" && by != "hash"; }
};

/// Where an epoch of a topic ends: after the messages that are there when a new job begins, or
/// never.
enum class TopicEnd { kWatermark, kNever };
inline constexpr Choice<TopicEnd> kTopicEnds[] = {{"watermark", TopicEnd::kWatermark},
                                                  {"never", TopicEnd::kNever}};

/// How a topic of Kafka is read.
struct KafkaConfig {
  std::string start = "earliest";  // earliest | latest | a time in UTC
  TopicEnd end = TopicEnd::kWatermark;
  std::string group = "";                    // whose offsets are committed; empty: none are
  std::string timeout = "1min";              // of waiting for a broker
  std::vector<std::string> properties = {};  // of librdkafka, "name=value"
  void visit(ConfigVisitor& v);

  bool is_endless() const { return end == TopicEnd::kNever; }
};

/// Other processes that read and parse the training data for the ranks.
struct LoadersConfig {
  static constexpr std::string_view kJob = "job";

  std::string store = "";         // where they are found; empty: there are none
  std::string timeout = "10min";  // of waiting for one
  void visit(ConfigVisitor& v);

  bool is_on() const { return !store.empty(); }
  std::int64_t timeout_ms() const;
};

/// The cache of parsed rows.
struct CacheConfig {
  static constexpr std::string_view kPlain = "folder";

  std::string folder = "";     // empty: there is none
  std::string max_size = "0";  // bytes of all caches in the folder; 0: no limit
  void visit(ConfigVisitor& v);

  bool is_on() const { return !folder.empty(); }
  std::int64_t max_bytes() const;  // throws Error(kInvalidConfig)
};

/// How many rows may be skipped before reading ends with an error; 0: no limit.
struct BadRowLimit {
  std::int64_t rows = 0;
  double share = 0.0;  // of the rows that have been read
};

/// What `data.format` says of the rows. kAuto: the names of the files do.
enum class DataFormat {
  kAuto,
  kCriteo,
  kCsv,
  kJson,
  kLibsvm,
  kLibffm,
  kParquet,
  kArrow,
  kSynthetic
};
inline constexpr Choice<DataFormat> kDataFormats[] = {{"auto", DataFormat::kAuto},
                                                      {"criteo", DataFormat::kCriteo},
                                                      {"csv", DataFormat::kCsv},
                                                      {"json", DataFormat::kJson},
                                                      {"libsvm", DataFormat::kLibsvm},
                                                      {"libffm", DataFormat::kLibffm},
                                                      {"parquet", DataFormat::kParquet},
                                                      {"arrow", DataFormat::kArrow},
                                                      {"synthetic", DataFormat::kSynthetic}};

/// What happens at a row that cannot be parsed.
enum class OnBadRow { kSkip, kStop };
inline constexpr Choice<OnBadRow> kOnBadRow[] = {{"skip", OnBadRow::kSkip},
                                                 {"stop", OnBadRow::kStop}};

/// Section `data` of the job configuration.
struct DataConfig {
  std::string schema_name = "";  // "criteo", a path, or empty for the inline `schema`
  SchemaConfig schema;
  DataFormat format = DataFormat::kAuto;
  TrainFilesConfig train;
  EvalConfig eval;
  KafkaConfig kafka;
  std::string group_by = "";    // feature, or column; empty: none
  std::int64_t batch_size = 0;  // of a step, over all ranks; 0: `auto`, until choose_batch_size
  std::int64_t reader_threads = 0;
  LoadersConfig loaders;
  CacheConfig cache;
  std::int64_t shuffle_rows = 0;
  OnBadRow on_bad_row = OnBadRow::kSkip;
  std::string max_bad_rows = "10%";
  std::int64_t fit_rows = 1'000'000;
  SyntheticConfig synthetic;
  void visit(ConfigVisitor& v);

  /// The format in force, but that `auto` is criteo or csv: files whose names say another format
  /// are of that one.
  DataFormat resolved_format() const;
  bool is_synthetic() const { return format == DataFormat::kSynthetic; }

  /// Throws Error(kInvalidConfig) if max_bad_rows says none.
  BadRowLimit bad_row_limit() const;

  /// True if there is evaluation data.
  bool has_eval() const;
};

/// The built-in schema of the Criteo click logs (Kaggle's and the 24 daily files): tab-separated,
/// no header: label, I1..I13 (signed log1p), C1..C26 (hex).
SchemaConfig criteo_schema();

/// If `schema` names a file, reads it into config.schema and empties schema_name, so that the
/// dumped configuration stands alone. Throws Error(kInvalidConfig).
void inline_schema_file(DataConfig& config);

}  // namespace satrap::data
