#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "satrap/data/config.h"

namespace satrap::data {

/// A categorical input of the model, in the order of Batch.
struct SchemaFeature {
  std::string name;
  std::int64_t max_length = 0;  // most ids of a bag; 0: no limit
};

/// The columns that a feature with an expanded configuration reads, in their order.
std::vector<std::string> columns_of(const FeatureConfig& feature);

/// The resolved meaning of the columns: what the files provide (RowBlock), what the model takes
/// (Batch), and how the one becomes the other.
struct Schema {
  /// The inputs of the model.
  std::vector<SchemaFeature> features;
  std::vector<std::string> numeric_names;  // "age", and "age.missing" for its indicator
  bool weighted = false;                   // Batch::id_weights is filled
  std::vector<NamedLabelConfig> labels;    // at least one, all named
  bool labelled = true;                    // false: labels are not read, and may be missing

  std::int64_t num_features() const { return static_cast<std::int64_t>(features.size()); }
  std::int64_t num_labels() const { return static_cast<std::int64_t>(labels.size()); }
  /// Numbers that are predicted for a row: one for each label, or for each class of the only one.
  std::int64_t num_outputs() const {
    return labels.front().source.has_classes() ? labels.front().source.classes : num_labels();
  }
  std::int64_t num_numeric_outputs() const {
    return static_cast<std::int64_t>(numeric_names.size());
  }

  /// Columns of RowBlock::numeric: each column of the file once as a number, and once as a time (in
  /// milliseconds: src/data/rows/time_text.h), however many inputs use it.
  struct RawNumber {
    std::string column;
    bool is_time = false;
    friend bool operator==(const RawNumber&, const RawNumber&) = default;
  };
  std::vector<RawNumber> raw_numeric;

  /// Place of the weight of a row in raw_numeric; -1: every weight is 1.
  std::int64_t weight = -1;

  // What schema_of_role says of the rows of a role, beside `selecting`:
  bool of_training = false;       // rows that teach nothing are left out
  double negatives_read = 1.0;    // the share of negatives that is read, of those in the files
  double share_of_negatives = 1;  // that are read, of all that there were: a negative stands for
                                  // the inverse. Before schema_of_role that of training

  /// Rows are read without labels and weights, which may be missing.
  void leave_out_labels();

  /// Columns of RowBlock::bags.
  struct IdColumn {
    std::int64_t feature = 0;  // in `features`; kGroups: read only for Batch::groups
    FeatureConfig config;
  };
  std::vector<IdColumn> id_columns;

  /// The source of Batch::groups: a feature, or else the id column of no feature.
  static constexpr std::int64_t kGroups = -1;
  bool grouped = false;
  std::int64_t group_feature = kGroups;

  /// Columns whose texts say which rows are read, each once; schema_of_role sets it.
  struct SelectingColumn {
    std::string column;
    std::string reader;         // for people: "data.eval.by"
    bool divides_rows = false;  // among training and evaluation
    std::string no_time = {};   // a text it is compared with that is no time; "": there is none
  };
  std::vector<SelectingColumn> selecting;

  /// Inputs of the dense network made from one number.
  struct NumericInput {
    std::int64_t raw = 0;     // in raw_numeric
    std::int64_t output = 0;  // in numeric_names; the indicator, if any, is the one after it
    NumericConfig config;
    std::int64_t since = 0;  // of an age: in raw_numeric
  };
  std::vector<NumericInput> numeric_inputs;

  /// Features made from the ranges of a number.
  struct Bucketed {
    std::int64_t raw = 0;
    std::int64_t feature = 0;
    FeatureConfig config;
  };
  std::vector<Bucketed> bucketed;

  /// Features made from the times of a column.
  struct Dated {
    std::int64_t raw = 0;
    std::int64_t feature = 0;
    FeatureConfig config;
  };
  std::vector<Dated> dated;

  /// Features made from the ids of two others, which come before them.
  struct Cross {
    std::int64_t first = 0, second = 0;  // in `features`
    std::int64_t feature = 0;
    FeatureConfig config;
  };
  std::vector<Cross> crosses;

  /// Columns whose text goes to Batch::kept, whatever else reads them.
  std::vector<std::string> kept;
  std::string kept_by = "--keep";  // for people: who asks for them

  /// How the text is to be read; `numeric` and `features` have their ranges ("C1..C26") expanded.
  SchemaConfig text;

  /// True if some transform depends on the data (z-scores, quantiles).
  bool needs_fit() const;
};

/// The schema of a validated configuration whose schema file has been read (inline_schema_file).
/// Throws Error(kInvalidConfig).
Schema resolve_schema(const DataConfig& config);

}  // namespace satrap::data
