#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/config.h"
#include "satrap/data/synthetic.h"
#include "satrap/data/topic_position.h"

namespace satrap::data {

/// How a column becomes the label of a row.
struct LabelConfig {
  static constexpr std::string_view kPlain = "column";

  std::string column = "label";
  std::vector<std::string> positive = {};  // texts that mean 1; empty: the column holds numbers
  std::vector<std::string> negative = {};  // texts that mean 0; empty: any that is not positive
  std::vector<double> threshold = {};      // numbers of at least this mean 1; empty: 0 and 1 only
  void visit(ConfigVisitor& v);
  friend bool operator==(const LabelConfig&, const LabelConfig&) = default;
};

/// One of several labels of a row.
struct NamedLabelConfig {
  static constexpr std::string_view kPlain = "column";

  std::string name = "";  // empty: that of the column; no control characters
  LabelConfig source;     // its fields are at the same level as the name
  double weight = 1.0;    // of the label's loss, in [1e-6, 1e6]
  void visit(ConfigVisitor& v);
};

/// A number that becomes one input of the dense network, or two with a missing indicator. A name
/// like "I1..I13" means thirteen of them.
struct NumericConfig {
  static constexpr std::string_view kPlain = "name";

  std::string name = "";           // of the input; empty: that of the column
  std::string column = "";         // empty: the name
  std::string transform = "none";  // none | log1p | zscore | log1p_zscore
  std::vector<double> clip = {};   // [low, high] of the value as read; empty: none
  double fill = 0.0;               // replaces a missing value, after the transform
  bool missing_indicator = false;  // adds an input that is 1 if the value is missing
  void visit(ConfigVisitor& v);
};

/// Ranges of a number that become the ids 0, 1, 2 ... of a feature.
struct BucketConfig {
  std::int64_t quantiles = 0;           // this many ranges of about equal share; 0: none
  std::vector<double> boundaries = {};  // ascending; range i starts at boundary i-1
  void visit(ConfigVisitor& v);
  bool any() const { return quantiles > 0 || !boundaries.empty(); }
};

/// A categorical input: a bag or sequence of ids. A name like "C1..C26" means 26 of them.
struct FeatureConfig {
  static constexpr std::string_view kPlain = "name";

  std::string name = "";                  // empty: that of the column
  std::string column = "";                // empty: the name
  std::vector<std::string> columns = {};  // instead of column: each holds ids of the bag
  std::string type = "string";            // string | int | hex
  std::string separator = "";             // between the ids of a bag; empty: one id
  std::string weight_separator = "";      // between an id and its weight; empty: no weights
  std::int64_t max_length = 0;            // ids kept of a bag; 0: all
  std::string keep = "first";     // first | last: which ids of a bag that is too long are kept
  std::string missing = "empty";  // empty | own_id: what a missing value becomes
  BucketConfig buckets = {};      // the column is a number, cut into ranges
  void visit(ConfigVisitor& v);
};

/// How values become ids and inputs, of which jobs have that of their time: 1 until satrap 0.1,
/// 2 from then on. SchemaConfig::visit tells the difference.
inline constexpr std::int64_t kValueRule = 2;

/// What the columns of a text file mean. `missing` and empty fields are missing values.
struct SchemaConfig {
  std::string delimiter = ",";
  std::string quote = "\"";   // empty: quotes have no meaning
  std::string decimal = ".";  // or ","
  bool header = true;
  std::vector<std::string> columns = {};  // names, for files without a header
  bool trim = true;                       // drop spaces around a field
  std::vector<std::string> missing = {};
  LabelConfig label;                          // for a model of one label
  std::vector<NamedLabelConfig> labels = {};  // for a model of several; empty: `label`
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

/// The evaluation data: files of their own, or a part of the training files' rows.
struct EvalConfig : FilesConfig {
  double fraction = 0.0;    // of the rows; 0: no part
  std::string by = "tail";  // tail | hash | a column
  void visit(ConfigVisitor& v);

  bool is_part() const { return fraction > 0.0; }
  bool by_tail() const { return is_part() && by == "tail"; }
  bool by_column() const { return is_part() && by != "tail" && by != "hash"; }

  /// By tail: the number of the first row of evaluation, if it has been counted; else -1. Not part
  /// of the file.
  std::int64_t first_row = -1;
};

/// How a topic of Kafka is read.
struct KafkaConfig {
  std::string start = "earliest";            // earliest | latest | a time in UTC
  std::string end = "watermark";             // watermark | never
  std::string group = "";                    // whose offsets are committed; empty: none are
  std::string timeout = "1min";              // of waiting for a broker
  std::vector<std::string> properties = {};  // of librdkafka, "name=value"
  void visit(ConfigVisitor& v);

  bool is_endless() const { return end == "never"; }

  /// Where the job begins or continues, once the chief has decided it; not part of the file.
  std::shared_ptr<const TopicPosition> position = {};
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

/// The caches of parsed rows that a job has met, by their paths. Any thread.
class JobCaches {
 public:
  void refuse(const std::string& path) {
    const std::lock_guard lock(mutex_);
    refused_.insert(path);
  }

  /// Whether there was no room for it: nobody tries again.
  bool has_refused(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return refused_.contains(path);
  }

  /// Keeps an open cache, and so its file, for later passes; instead of the one before it.
  void keep(const std::string& path, std::shared_ptr<const void> open) {
    const std::lock_guard lock(mutex_);
    open_[path] = std::move(open);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> refused_;
  std::map<std::string, std::shared_ptr<const void>> open_;
};

/// What a job has said of its data: each pass over the same rows would say it again. Any thread.
class JobWords {
 public:
  bool is_new(const std::string& line) {
    const std::lock_guard lock(mutex_);
    return said_.size() >= kMost || said_.insert(line).second;
  }

 private:
  static constexpr std::size_t kMost = 10'000;
  std::mutex mutex_;
  std::set<std::string> said_;
};

/// The cache of parsed rows.
struct CacheConfig {
  static constexpr std::string_view kPlain = "folder";

  std::string folder = "";     // empty: there is none
  std::string max_size = "0";  // bytes of all caches in the folder; 0: no limit
  void visit(ConfigVisitor& v);

  bool is_on() const { return !folder.empty(); }
  std::int64_t max_bytes() const;  // throws Error(kInvalidConfig)

  /// What the job has found out; copies of the configuration share it. Not part of the file.
  std::shared_ptr<JobCaches> caches = std::make_shared<JobCaches>();
};

/// How many rows may be skipped before reading ends with an error; 0: no limit.
struct BadRowLimit {
  std::int64_t rows = 0;
  double share = 0.0;  // of the rows that have been read
};

/// Section `data` of the job configuration.
struct DataConfig {
  std::string schema_name = "";  // "criteo", a path, or empty for the inline `schema`
  SchemaConfig schema;
  std::string format = "auto";  // auto | criteo | csv | json | libsvm | libffm |
                                // parquet | arrow | synthetic
  FilesConfig train;
  EvalConfig eval;
  KafkaConfig kafka;
  std::string group_by = "";    // feature, or column; empty: none
  std::int64_t batch_size = 0;  // of a step, over all ranks; 0: `auto`, until choose_batch_size
  std::int64_t reader_threads = 0;
  LoadersConfig loaders;
  CacheConfig cache;
  std::int64_t shuffle_rows = 0;
  std::string on_bad_row = "skip";  // skip | stop
  std::string max_bad_rows = "10%";
  std::int64_t fit_rows = 1'000'000;
  SyntheticConfig synthetic;
  std::string folder = {};  // as JobConfig::folder says; not part of the section
  // Once set, passes before the first step end; null: nobody sets it. Not part of the section.
  const std::atomic<bool>* stop = nullptr;
  // Copies of the configuration share it; not part of the section.
  std::shared_ptr<JobWords> words = std::make_shared<JobWords>();
  // What share_generator has made, which passes share; not part of the section.
  std::shared_ptr<const SyntheticGenerator> generator = {};
  void visit(ConfigVisitor& v);

  /// The format in force, but that `auto` is criteo or csv: files whose names say another format
  /// are of that one.
  std::string resolved_format() const;

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

/// Checks the rules that involve several fields; opens no file. Throws Error(kInvalidConfig)
/// starting with the place of the value ("train.yaml:12: ") if `origins` has it.
void validate(const DataConfig& config, const ConfigOrigins& origins = {});

}  // namespace satrap::data
