#include "src/app/job_draft.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "satrap/core/config.h"
#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/ids.h"
#include "satrap/core/text.h"
#include "satrap/data/row_count.h"
#include "src/app/column_choice.h"
#include "src/app/label_choice.h"

namespace satrap::app {
namespace {

constexpr std::int64_t kFewRows = 100'000;        // of which a tenth says little
constexpr std::int64_t kRowsToLearn = 2'000'000;  // in all epochs together, if they are fewer
constexpr std::int64_t kMostEpochs = 20;
constexpr std::int64_t kEvaluationsPerEpoch = 2;
constexpr std::int64_t kPatience = 5;     // evaluations
constexpr double kAccumulator = 10.0;     // times the square of an example's weight in a batch
constexpr double kManyUnlabelled = 0.05;  // share of rows

/// Text in columns: values on the left, comments on the right.
class CommentedLines {
 public:
  void add(const std::string& text, const std::string& comment = "") {
    constexpr std::size_t kColumn = 46;
    text_ += text;
    if (!comment.empty()) {
      text_ += fmt::format("{:{}}  # {}", "", text.size() < kColumn ? kColumn - text.size() : 0,
                           printable(comment));
    }
    text_ += '\n';
  }
  void comment(const std::string& text, int indent = 0) {
    text_ += fmt::format("{:{}}# {}\n", "", indent, printable(text));
  }
  std::string take() { return std::move(text_); }

 private:
  /// A comment is one line, and data may hold anything.
  static std::string printable(std::string text) {
    for (char& c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    return text;
  }

  std::string text_;
};

/// The source of the rows of evaluation.
struct Split {
  double fraction = 0.0;
  std::string by, reason;
};

Split choose_split(const data::Sample& sample, const std::vector<ColumnChoice>& columns) {
  if (!sample.is_rereadable) return {};
  Split split;
  split.fraction = sample.total_rows < kFewRows ? 0.2 : 0.1;
  const auto time = std::ranges::find_if(columns, &ColumnChoice::is_time);
  split.by = time == columns.end() ? "hash" : "tail";
  split.reason = time == columns.end()
                     ? "a random choice, the same in every run: rows are not in the order of a time"
                     : fmt::format("the last rows: they are in the order of {}", time->name);
  return split;
}

class Draft {
 public:
  Draft(const data::Sample& sample, const DraftRequest& request)
      : sample_(sample), request_(request) {
    const std::set<std::string_view> lists(sample.lists.begin(), sample.lists.end());
    for (std::size_t c = 0; c < sample.columns.size(); ++c) {
      const char delimiter = sample.delimiter.empty() ? '\0' : sample.delimiter.front();
      profiles_.push_back(data::profile_column(sample.columns[c], delimiter));
      if (!lists.contains(sample.names[c])) continue;
      profiles_.back().is_list = true;
      profiles_.back().kind = data::ColumnProfile::Kind::kText;  // no number, no time
    }
    label_ = choose_label(sample, profiles_, request.label);
    columns_ = choose_columns(sample, profiles_, label_);
    split_ = choose_split(sample, columns_);
    if (split_.by == "tail") leave_out_ascending(columns_);
    if (std::ranges::none_of(columns_, &ColumnChoice::is_used)) {
      throw Error(
          ErrorCode::kInvalidConfig,
          satrap::printable(concat("'", sample.files.front(), "': no column beside the label '",
                                   sample.names[label_.column], "' is left to learn from: ",
                                   columns_.empty() ? "there is none"
                                                    : concat(columns_.front().name, " (",
                                                             columns_.front().reason, "), ..."))));
    }
  }

  std::string yaml() {
    write_head();
    write_data();
    write_schema();
    write_model();
    write_training();
    return lines_.take();
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    std::size_t num_numbers = 0, num_features = 0;
    constexpr std::size_t kMostNamed = 100;
    std::size_t num_left_out = 0;
    std::string left_out;
    for (const ColumnChoice& column : columns_) {
      num_numbers += column.numeric.size();
      num_features += column.features.size();
      if (column.is_used() || ++num_left_out > kMostNamed) continue;
      left_out +=
          concat(left_out.empty() ? "" : ", ",
                 column.name.empty() ? "the column without a name" : shown_value(column.name));
    }
    if (num_left_out > kMostNamed) {
      left_out += fmt::format(" and {} more", num_left_out - kMostNamed);
    }
    notes.push_back(concat(
        "data        ", num_rows(),
        sample_.is_whole ? std::string()
                         : fmt::format("; looked at the first {}", with_commas(sample_.num_rows))));
    notes.push_back(fmt::format("label       {}: {}", sample_.names[label_.column], label_.reason));
    notes.push_back(fmt::format("inputs      {} numbers and {} features from {} columns",
                                num_numbers, num_features,
                                std::ranges::count_if(columns_, &ColumnChoice::is_used)));
    if (!left_out.empty()) notes.push_back(concat("left out    ", left_out));
    notes.push_back(split_.by.empty() ? "evaluation  none: standard input can be read only once"
                                      : fmt::format("evaluation  {:g} % of the rows by {}",
                                                    100 * split_.fraction, split_.by));
    add_doubts(notes);
    return notes;
  }

 private:
  /// Adds what is doubtful about columns that are used all the same.
  void add_doubts(std::vector<std::string>& notes) const {
    if (label_.is_guess) {
      notes.push_back(fmt::format("look at     label {}: a guess; name the column with --label",
                                  sample_.names[label_.column]));
    }
    if (sample_.num_open_quotes > 0) {
      notes.push_back(
          fmt::format("look at     {} rows have a quote that is not closed, and are skipped",
                      with_commas(sample_.num_open_quotes)));
    }
    for (const ColumnChoice& column : columns_) {
      if (column.is_used() && column.is_doubtful) {
        notes.push_back(fmt::format("look at     {}: {}", column.name, column.reason));
      }
    }
    for (std::size_t c = 0; c < sample_.columns.size(); ++c) {
      if (std::ranges::all_of(sample_.columns[c], is_utf8)) continue;
      notes.push_back(fmt::format(
          "look at     {}: texts that are not UTF-8; the same texts in UTF-8 have other ids",
          sample_.names[c]));
    }
  }

  void write_head() {
    lines_.comment(
        fmt::format("Written by `satrap init` from {} {} rows of {}. Each comment says what "
                    "was seen.",
                    sample_.is_whole ? "all" : "the first", with_commas(sample_.num_rows),
                    sample_.files.front()));
    lines_.comment("Correct what is wrong; `satrap config explain KEY` documents every key.");
    if (sample_.num_ragged > 0) {
      lines_.comment(fmt::format(
          "{} more {} and will be skipped.", with_commas(sample_.num_ragged),
          sample_.is_json ? "lines are no JSON objects" : "rows have another number of columns"));
    }
    if (sample_.num_rare > 0) {
      lines_.comment(fmt::format("{} keys that are in less than 1 % of the rows are left out.",
                                 with_commas(sample_.num_rare)));
    }
    lines_.add("");
  }

  /// As given if the configuration is written to the working directory, where paths mean the same.
  std::string path_of(const std::string& path) const {
    const bool is_here = std::filesystem::path(request_.config).parent_path().empty();
    if (!is_relative_path(path) || is_here) return path;
    return std::filesystem::absolute(path).lexically_normal().string();
  }

  void write_data() {
    lines_.add("data:");
    std::string paths;
    for (const std::string& path : request_.data) {
      paths += concat(paths.empty() ? "" : ", ", yaml_scalar(path_of(path)));
    }
    lines_.add(request_.data.size() == 1 ? concat("  train: ", paths)
                                         : concat("  train: {path: [", paths, "]}"),
               !sample_.is_rereadable
                   ? "standard input, which can be read only once: no part is kept for evaluation"
                   : num_rows());
    if (!sample_.format.empty()) {
      lines_.add(concat("  format: ", sample_.format), "by the first row");
    }
    if (!split_.by.empty()) {
      lines_.add(fmt::format("  eval: {{fraction: {}, by: {}}}", split_.fraction, split_.by),
                 split_.reason);
    }
    if (sample_.is_rereadable) {
      lines_.add("  batch_size: auto", fmt::format("{} for so many rows", batch_size()));
    } else {
      lines_.add(fmt::format("  batch_size: {}", batch_size()),
                 "for as many rows as were seen; `auto` cannot count those of standard input");
    }
    if (num_epochs() > 1) lines_.add("  shuffle_rows: 100000", "a buffer of so many rows");
    if (label_.missing_share > kManyUnlabelled) {
      lines_.add("  max_bad_rows: 0",
                 fmt::format("any number: {:.2g} % of the rows have no label, and are skipped",
                             100 * label_.missing_share));
    }
  }

  void write_schema() {
    lines_.add("  schema:");
    if (!sample_.delimiter.empty()) {
      lines_.add(concat("    delimiter: ",
                        sample_.delimiter == "\t" ? "\"\\t\"" : yaml_scalar(sample_.delimiter)));
    }
    if (sample_.decimal_comma) {
      lines_.add("    decimal: \",\"", "numbers are written as 39,02");
    }
    if (!sample_.header) {
      lines_.add("    header: false", "the first line is a row: names are made up");
      std::string names;
      for (const std::string& name : sample_.names) {
        names += concat(names.empty() ? "" : ", ", yaml_scalar(name));
      }
      lines_.add(concat("    columns: [", names, "]"));
    }
    std::set<std::string> missing;
    for (std::size_t c = 0; c < profiles_.size(); ++c) {
      if (c == label_.column) continue;
      for (const auto& [text, count] : profiles_[c].missing) missing.insert(text);
    }
    std::string texts, infinities;
    for (const std::string& text : missing) {
      texts += concat(texts.empty() ? "" : ", ", yaml_scalar(text));
      if (data::means_infinity(text)) infinities += concat("; without ", text, " its rows are bad");
    }
    if (!missing.empty()) {
      lines_.add(concat("    missing: [", texts, "]"), concat("and the empty text", infinities));
    }
    lines_.add(concat("    label: ", label_.yaml), label_.reason);
    write_inputs("numeric", &ColumnChoice::numeric);
    write_inputs("features", &ColumnChoice::features);
    const auto is_left_out = [](const ColumnChoice& column) { return !column.is_used(); };
    if (std::ranges::none_of(columns_, is_left_out)) return;
    lines_.comment("Left out:", 4);
    for (const ColumnChoice& column : columns_) {
      if (is_left_out(column)) {
        lines_.comment(fmt::format("  {}: {}", shown_value(column.name), column.reason), 4);
      }
    }
  }

  void write_inputs(const std::string& key, std::vector<std::string> ColumnChoice::* entries) {
    if (std::ranges::all_of(columns_, [&](const auto& c) { return (c.*entries).empty(); })) return;
    lines_.add(concat("    ", key, ":"));
    for (const ColumnChoice& column : columns_) {
      for (const std::string& entry : column.*entries) {
        const bool is_first = &entry == &(column.*entries).front();
        lines_.add(concat("      - ", entry), is_first ? column.reason : "");
      }
    }
  }

  void write_model() {
    lines_.add("tables:");
    lines_.add(concat("  default: ", table()),
               num_epochs() == 1 ? "" : "the accumulator holds rare ids back");
    if (num_features() > kMaxTables) {
      lines_.add("features: {default: {table: shared}}",
                 fmt::format("one table for all, since there are at most {} tables", kMaxTables));
    }
    lines_.add("model: {type: deepfm, hidden: [128, 64], dropout: 0.3}");
    lines_.add("dense_optimizer: {type: adam, lr: 0.002}");
    write_attention();
  }

  /// The accumulator holds back the first steps of rare ids, which learn by heart what they see
  /// once. Gradients are means over a batch, so that it falls with the square of the batch. In a
  /// single epoch there is no time for that.
  std::string table() const {
    if (num_epochs() == 1) return "{dim: 16, optimizer: {type: adagrad, lr: 0.02}}";
    const auto batch = static_cast<double>(batch_size());
    return fmt::format(
        "{{dim: 16, optimizer: {{type: adagrad, lr: 0.06, initial_accumulator: {:.1g}}}}}",
        kAccumulator / (batch * batch));
  }

  /// How to let the model look at what of a history is like the candidate.
  void write_attention() {
    const auto [history, candidate] = find_history(sample_, profiles_, columns_);
    if (history.empty()) return;
    lines_.comment(
        fmt::format("{} has ids that {} has, too: a history and a candidate. Model `din` "
                    "compares them:",
                    history, candidate));
    const std::string item = yaml_scalar(candidate), list = yaml_scalar(history);
    lines_.comment(concat("  tables: {items: ", table(), "}"));
    lines_.comment(
        fmt::format("  features: {{{}: {{table: items}}, {}: {{table: items, pooling: "
                    "sequence}}}}",
                    item, list));
    lines_.comment(
        fmt::format("  model: {{type: din, attend: [{{sequence: {}, query: {}}}]}}", list, item));
  }

  std::int64_t num_features() const {
    std::int64_t number = 0;
    for (const ColumnChoice& column : columns_) number += std::ssize(column.features);
    return number;
  }

  std::string num_rows() const {
    if (sample_.is_whole) return with_commas(sample_.total_rows) + " rows";
    if (sample_.total_rows == 0)
      return fmt::format("more than {} rows", with_commas(sample_.num_rows));
    double unit = 1.0;  // three digits of an estimate
    while (static_cast<double>(sample_.total_rows) >= 1000.0 * unit) unit *= 10.0;
    const double rounded = std::round(static_cast<double>(sample_.total_rows) / unit) * unit;
    return fmt::format("about {} rows", with_commas(std::llround(rounded)));
  }

  std::int64_t batch_size() const { return data::fitting_batch_size(sample_.total_rows); }

  std::int64_t num_epochs() const {
    if (!sample_.is_rereadable) return 1;
    return std::clamp((kRowsToLearn + sample_.total_rows / 2) / sample_.total_rows, std::int64_t{1},
                      kMostEpochs);
  }

  void write_training() {
    lines_.add("train:");
    lines_.add(fmt::format("  epochs: {}", num_epochs()),
               num_epochs() > 1 ? "at most: it ends once evaluation stops improving"
                                : "more rows teach more than a second look at the same");
    if (split_.by.empty() || num_epochs() == 1) return;
    const double rows = static_cast<double>(sample_.total_rows) * (1.0 - split_.fraction);
    const double steps =
        rows / static_cast<double>(batch_size()) / static_cast<double>(kEvaluationsPerEpoch);
    lines_.add(fmt::format("  eval_every: {} steps", std::max(1LL, std::llround(steps))),
               fmt::format("about {} times per epoch", kEvaluationsPerEpoch));
    lines_.add(fmt::format("  early_stopping: {{metric: logloss, patience: {}}}", kPatience),
               "evaluations without a better one; the best checkpoint is kept");
  }

  const data::Sample& sample_;
  const DraftRequest& request_;
  std::vector<data::ColumnProfile> profiles_;
  LabelChoice label_;
  std::vector<ColumnChoice> columns_;
  Split split_;
  CommentedLines lines_;
};

}  // namespace

JobDraft draft_job(const data::Sample& sample, const DraftRequest& request) {
  Draft draft(sample, request);
  return {draft.yaml(), draft.notes()};
}

}  // namespace satrap::app
