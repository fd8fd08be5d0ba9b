#include "satrap/data/config.h"

#include <filesystem>
#include <optional>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::data {

constexpr ChangeRule kOtherNumber = impossible("the network was trained on another number");

void NumericConfig::visit(ConfigVisitor& v) {
  v.field("name", name,
          "Name of the input; by default the name of the column. I1..I13 means thirteen inputs.");
  v.field("column", column, "Column of the file; by default the name.");
  v.field("since", since,
          "Makes the number an age: the time in `column` minus the one in this column, negative if "
          "it is earlier, and missing if either is. What times are is in docs/times.md. Empty: the "
          "column holds numbers.",
          {.resume = kOtherNumber});
  v.choice("unit", unit, kAgeUnits, "Of the age: s, min, h, or d for days of 24 hours.",
           {.resume = kOtherNumber});
  v.choice(
      "transform", transform, kTransforms,
      "log1p: log(1 + |x|) with the sign of x. zscore: (x - mean) / standard deviation over the "
      "training data. log1p_zscore: log1p, then zscore.",
      {.resume = impossible("the network was trained on numbers transformed so, and the checkpoint "
                            "has the fitted values")});
  v.field("clip", clip,
          "[low, high]: limits of the value, applied before the transform. Empty: none.");
  v.field("fill", fill, "Value that replaces a missing one, after the transform.");
  v.field("missing_indicator", missing_indicator,
          "Adds an input that is 1 if the value is missing, else 0.",
          {.resume = impossible("it is an input of the network")});
}

constexpr ChangeRule kFitted = impossible("the checkpoint has the ranges and a row for each");

void BucketConfig::visit(ConfigVisitor& v) {
  v.field("quantiles", quantiles,
          "Cut the number into this many ranges, each with about the same share of the training "
          "data. 0: no.",
          {.min = 0, .max = 1e6, .resume = kFitted});
  v.field("boundaries", boundaries,
          "Ascending. Range 0 holds the values below the first; range i starts at boundary i-1.",
          {.resume = kFitted});
}

constexpr ChangeRule kOtherIds = impossible("ids would mean other rows");

void FeatureConfig::visit(ConfigVisitor& v) {
  v.field("name", name,
          "Name of the feature; by default the name of the column. C1..C26 means 26 features.");
  v.field("column", column, "Column of the file; by default the name.");
  v.field(
      "columns", columns,
      "Instead of column: the columns whose fields are the ids of one bag or sequence, in this "
      "order, which is the file's, such as 50..99. A blank field adds no id (missing: own_id adds "
      "that).");
  v.choice("type", type, kIdTypes,
           "How an id is written: string (any text, hashed), int (64 bits), hex (up to 16 digits).",
           {.resume = kOtherIds});
  v.field("separator", separator,
          "Character between the ids of a bag. Empty: the field is one id.");
  v.field("weight_separator", weight_separator,
          "Character between an id and its weight, as in 17:0.5. Empty: no weights.");
  v.field("max_length", max_length, "Keep at most this many ids of a bag. 0: all.", {.min = 0});
  v.choice("keep", keep, kKeptIds, "Which ids of a bag that is too long are kept.");
  v.choice("missing", missing, kMissingIds,
           "What a missing value becomes: an empty bag, or a separate id.");
  v.section("buckets", buckets, "Makes the feature from a number, cut into ranges.");
  v.choice("part", part, kDateParts,
           "Makes the feature from a time: its hour (0 to 23), weekday (0 to 6, from Monday) or "
           "month_day (1 to 31). What times are is in docs/times.md.",
           {.resume = kOtherIds});
  v.field("zone", zone,
          "Time zone of the part, such as Asia/Shanghai or Europe/Berlin, by this machine's "
          "database of time zones.",
          {.resume = kOtherIds});
  v.field("cross", cross,
          "Instead of a column: the names of two features that are listed before this one. Each "
          "pair of their ids is an id; the row has none if one of them has none. A row with more "
          "than 65,536 pairs is bad: `max_length` of the two limits them.",
          {.resume = kOtherIds});
}

void SchemaConfig::visit(ConfigVisitor& v) {
  v.field("delimiter", delimiter, "Character between columns; \\t for tab.");
  v.field("quote", quote, "Character around fields that hold a delimiter. Empty: none.");
  v.choice("decimal", decimal, kDecimals,
           "Character before the fraction of a number in text: 0.5 or, with \",\", 0,5. Not of "
           "Parquet, whose texts have a point.");
  v.field("header", header, "The first line of every file names the columns.");
  v.field("columns", columns,
          "Names of the columns, for files without a header. Empty: they are numbered from 0.");
  v.field("trim", trim, "Drop spaces around fields.");
  v.field("missing", missing,
          "Texts that mean a missing value, besides the empty text and, where a number or an id of "
          "type int or hex is expected, what programs write for one, in any case: nan, -nan, null, "
          "na, n/a, #n/a, <na>, none, \\N, 1.#qnan and the like.");
  v.section("label", label, "The label, if there is one.");
  v.list("labels", labels,
         "Several labels, instead of `label`. The model predicts each of them; progress, early "
         "stopping and the best checkpoint use the first. A label may be missing in a row, which "
         "then teaches the others alone; training leaves out a row without any.");
  v.field(
      "weight", weight,
      "Column of the weights of rows, numbers of at least 0, which multiply an example's loss and "
      "count in all metrics. Training leaves out rows of weight 0; evaluation scores them, and "
      "they count nowhere. A row without a weight is bad; data for predictions need none. The loss "
      "of a step is the sum of the weighted losses divided by the number of examples. Empty: every "
      "weight is 1.",
      {.resume = kOtherTraining});
  v.list("numeric", numeric, "Numbers that go into the dense network; true and false are 1 and 0.");
  v.list("features", features, "Categorical inputs: bags or sequences of ids.");
  v.field(
      "value_rule", value_rule,
      "How values become ids and inputs. 2: numbers are compared and transformed in 64 bits; a "
      "truth value is one id, however it is written, and a whole number with a point is its digits "
      "(17.0 is 17). 1: as satrap did before: in 32 bits, and every text is an id of its own. Jobs "
      "that began with rule 1 keep it.",
      {.min = 1,
       .max = kValueRule,
       .resume = impossible("values would be other ids and inputs; write the checkpoint's, "
                            "data.schema.value_rule: 1")});
}

void FilesConfig::visit(ConfigVisitor& v) {
  v.field(
      "path", path,
      "Files or globs: text, plain or packed by gzip or zstd, or Parquet or Arrow. The matches of "
      "a glob are read in natural order (day_2 before day_10). They may be in S3, s3://bucket/key, "
      "or in HDFS, hdfs://host:9870/path with the port of the name node's web server; the "
      "environment has the credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE, HADOOP_USER_NAME), how "
      "long a request is tried again (SATRAP_REMOTE_TIMEOUT, 1min; a try may take half of it) and "
      "how long it may make no progress (SATRAP_REMOTE_STALL, 15s). \"-\": standard input. For "
      "training also a topic of Kafka, kafka://host:9092,host:9092/topic, whose messages are one "
      "or several lines of text or, with data.format arrow or parquet, streams or files of Arrow "
      "IPC or files of Parquet. data.eval: none leaves out evaluation and what needs it "
      "(train.eval_every, train.early_stopping).");
  v.field("max_rows", max_rows, "Read only the first rows (lines). 0: all.", {.min = 0});
  v.field(
      "where", where,
      "Read only the rows that meet this condition: comparisons joined by `and`, such as day >= "
      "2026-11-01 and country in (US, DE). The operators are =, !=, <, <=, >, >=, in and not in. "
      "Two numbers are compared as numbers, with true and false as 1 and 0. Anything else, and "
      "anything in quotes, is compared as text, byte by byte. Dates and times of Parquet and Arrow "
      "are 2026-11-20 and 2026-11-20T21:05:09.125 (in UTC if they have a zone). A missing value is "
      "the empty text '', and neither less nor greater than any value. The columns need not be "
      "inputs. Row groups of Parquet whose statistics rule out such rows are not read. max_rows, "
      "batch_size: auto and an evaluation part by: tail count all rows, also those that do not "
      "meet it. Empty: all rows.");
}

constexpr ChangeRule kOtherRate = impossible(
    "what the network predicts is put right by this rate; write the checkpoint's, or begin a new "
    "run, with train.warm_start for its rows");

void TrainFilesConfig::visit(ConfigVisitor& v) {
  FilesConfig::visit(v);
  v.field(
      "negatives", negatives,
      "Read only this share of the negatives, the rows without a label of 1, for shorter training. "
      "A hash of a row's place says which: its number from 0 over all files, or the partition, "
      "offset and line of a topic; every pass and every rank reads the same ones. With one label "
      "the loss is that of a logit moved by -log(negatives), so that predictions and the export "
      "are those of all rows. With several labels a negative that is read weighs 1 / negatives in "
      "the loss. In metrics it weighs that much always. Evaluation reads all rows.",
      {.min = 1e-6, .max = 1.0, .resume = kOtherRate});
  v.field("negatives_in_files", negatives_in_files,
          "The share of negatives that the training files have, if somebody has left out the "
          "others: predictions and metrics are put right as with negatives.",
          {.min = 1e-6, .max = 1.0, .resume = kOtherRate});
}

void EvalConfig::visit(ConfigVisitor& v) {
  FilesConfig::visit(v);
  v.field("fraction", fraction,
          "Instead of a path: keep this share of the training rows for evaluation. They are never "
          "trained on. 0: none.",
          {.min = 0, .max = 0.9, .resume = kOtherInput});
  v.field(
      "by", by,
      "Which rows these are. tail: the last ones, for logs in the order of time. hash: a random "
      "choice, those whose number, from 0 over all files, has in decimal digits an XXH3 hash (64 "
      "bits) below fraction * 2^64. Any other text is a column, whose text is hashed instead: rows "
      "of the same user, say, stay together; rows without a value go by their number. A list "
      "counts by its only element; a row with a longer one is bad.",
      {.resume = kOtherInput});
}

void KafkaConfig::visit(ConfigVisitor& v) {
  v.field(
      "start", start,
      "Where a new job begins: earliest, the first message that is there; latest, after the last "
      "one; or a time in UTC such as 2026-11-26T12:30:00Z. A resumed job continues where its "
      "checkpoint was.",
      {.resume = kSameTraining});
  v.choice("end", end, kTopicEnds,
           "watermark: after the messages that are there when a new job begins, which is an epoch. "
           "never: wait for more, until train.max_steps or a signal; each of several ranks then "
           "reads partitions of its own.");
  v.field("group", group,
          "Consumer group whose offsets are committed after each checkpoint, for tools that show "
          "the lag. satrap itself continues from its checkpoint. Empty: none.",
          {.resume = kSameTraining});
  v.field("timeout", timeout,
          "How long to wait for a broker, or for a message that must be there, before the run ends "
          "with an error: '30s', '10min'.",
          {.resume = kSameTraining});
  v.field("properties", properties,
          "Properties of librdkafka's consumer, each name=value, such as "
          "security.protocol=SASL_SSL, but none that names code. ${NAME}, which has KAFKA in its "
          "name, becomes the value of that environment variable; secrets are accepted in this form "
          "only: no file may have them.",
          {.resume = kSameTraining});
}

void LoadersConfig::visit(ConfigVisitor& v) {
  v.field(
      "store", store,
      "Where processes of `satrap loader` are found, which read and parse the training data for "
      "the ranks: job, the job's own store (`satrap-run --loaders N` sets this), or the URL of a "
      "`satrap store`. They read files and topics; their number changes no result, but of a topic "
      "without an end, whose order is that of arrival. Empty: the ranks read.");
  v.field("timeout", timeout,
          "How long a rank waits for a loader while none can be used, before the run ends with an "
          "error: '30s', '10min'.");
}

std::int64_t LoadersConfig::timeout_ms() const {
  return static_cast<std::int64_t>(1e3 * parse_duration(timeout));
}

void CacheConfig::visit(ConfigVisitor& v) {
  v.field(
      "folder", folder,
      "Folder for the parsed rows of training and evaluation files. The first pass over them "
      "writes it. Later passes and runs read it instead, much faster and with the same bits. It "
      "is written anew when a file or what is parsed changes, or the ranks or batch_size of a "
      "job of several ranks, each of which caches its own rows. Not for topics, standard input "
      "and synthetic data. Empty: none.");
  v.field(
      "max_size", max_size,
      "Bytes that all caches in the folder may take together, such as 200GiB. The least recently "
      "used ones are deleted first, but none that a job uses. Rows that do not fit are parsed "
      "in each pass. 0: no limit.");
}

std::int64_t CacheConfig::max_bytes() const { return parse_bytes(max_size); }

void DataConfig::visit(ConfigVisitor& v) {
  v.section(
      "schema", schema,
      "What the columns mean: criteo, a YAML file with the keys of this section, or the section "
      "itself.",
      {}, &schema_name);
  v.choice(
      "format", format, kDataFormats,
      "criteo: tab-separated Criteo click logs. csv: any delimited text. json: JSON lines, an "
      "object per line, whose keys are the columns (a.b is b in a); numbers, texts, true, false, "
      "and arrays of them as bags and sequences; null and no key are a missing value. libsvm: "
      "lines `label index:value ...` with the columns label, qid, features (the indices, as ids) "
      "and 0, 1, ... (the value of that index). libffm: lines `label field:index:value ...` with "
      "the columns label and 0, 1, ... (the indices of that field as ids, or its value). In both "
      "values are weights of ids with weight_separator: \":\", and else 1. parquet: Parquet, whose "
      "columns are found by name; integers, booleans (as 0 and 1), floating-point numbers, texts, "
      "and lists of integers or texts as bags and sequences; a null is a missing value. arrow: "
      "files of Arrow IPC (Feather V2), as Parquet. synthetic: rows generated on the fly. auto: by "
      "the names of the files, json for .jsonl, .ndjson and .json, libsvm for .libsvm and .svm, "
      "libffm for .libffm and .ffm (all also before .gz and .zst), parquet for .parquet, arrow for "
      ".arrow, .feather and .ipc; else criteo with schema criteo, else csv.");
  v.section(
      "train", train,
      "The training data. A resumed run compares them with those that its checkpoint has read: "
      "files may be appended, what has been read must stay.");
  v.section("eval", eval,
            "The evaluation data: files of their own, or a part of the training files.",
            kOtherTraining);
  v.section("kafka", kafka, "How train.path is read if it is a topic, kafka://host:9092/topic.");
  v.field(
      "group_by", group_by,
      "Feature or other column whose values group the evaluation rows (a user, a session) for the "
      "grouped AUC: the mean of the groups' AUCs, weighted by their rows. Rows without a value and "
      "groups with only one label value do not count. Empty: none.",
      {.resume = kOtherTraining});
  v.field(
      "batch_size", batch_size,
      "Examples per step, over all ranks. auto: the power of two that gives an epoch at least 200 "
      "steps, 32 to 2048, for the number of rows that the training files seem to have; 2048 where "
      "that cannot be known.",
      {.min = 1, .zero_word = "auto"});
  v.field("reader_threads", reader_threads, "Threads that parse. 0: one per four CPUs.",
          {.min = 0, .max = 1024, .resume = kSameTraining});
  v.section("loaders", loaders, "Processes that read the training data for the ranks.",
            kSameTraining);
  v.section("cache", cache, "Where parsed rows are kept for later passes and runs.", kSameTraining);
  v.field("shuffle_rows", shuffle_rows,
          "Shuffle the training rows within a buffer of this many. 0: the order of the files.",
          {.min = 0});
  v.choice("on_bad_row", on_bad_row, kOnBadRow, "What to do with a row that cannot be parsed.",
           {.resume = kOtherTraining});
  v.field("max_bad_rows", max_bad_rows,
          "End the run with an error if more training rows than this are skipped: a number, or a "
          "share such as 10% of the rows read so far, once these are 10,000 or all. 0: never.",
          {.resume = kOtherTraining});
  v.field("fit_rows", fit_rows,
          "Number of training rows that z-scores and quantiles are fitted on. 0: all.",
          {.min = 0, .resume = kSameTraining});
  v.section("synthetic", synthetic, "The generated click log of format synthetic.");
}

BadRowLimit DataConfig::bad_row_limit() const {
  if (const std::optional<double> share = parse_share(max_bad_rows)) return {.share = *share};
  const std::optional<std::int64_t> rows = parse_number<std::int64_t>(max_bad_rows);
  if (rows && *rows >= 0) return {.rows = *rows};
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("expected a number of rows or a share such as 10%, got \"", max_bad_rows, "\""));
}

DataFormat DataConfig::resolved_format() const {
  if (format != DataFormat::kAuto) return format;
  return schema_name == "criteo" ? DataFormat::kCriteo : DataFormat::kCsv;
}

bool DataConfig::has_eval() const {
  return is_synthetic() ? synthetic.eval_rows > 0 : eval.is_part() || !eval.path.empty();
}

SchemaConfig criteo_schema() {
  SchemaConfig schema;
  schema.delimiter = "\t";
  schema.quote = "";
  schema.header = false;
  schema.columns = {"label"};
  for (int i = 1; i <= 13; ++i) schema.columns.push_back(concat("I", i));
  for (int i = 1; i <= 26; ++i) schema.columns.push_back(concat("C", i));
  NumericConfig integers;
  integers.name = "I1..I13";
  integers.transform = Transform::kLog1p;
  schema.numeric = {integers};
  FeatureConfig ids;
  ids.name = "C1..C26";
  ids.type = IdType::kHex;
  schema.features = {ids};
  return schema;
}

void inline_schema_file(DataConfig& config) {
  if (config.schema_name.empty() || config.schema_name == "criteo") return;
  const std::string path = config.schema_name;
  if (!std::filesystem::is_regular_file(path)) {
    throw Error(ErrorCode::kInvalidConfig,
                concat("data.schema: '", config.schema_name,
                       "' is neither the built-in schema criteo nor a file"));
  }
  SchemaConfig schema;
  load_config(schema, path);
  config.schema = std::move(schema);
  config.schema_name.clear();
}

}  // namespace satrap::data
