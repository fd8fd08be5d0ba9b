#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satrap/core/config.h"

namespace satrap::data {

/// What a label is, unless it has `classes`: 0 or 1, or any number.
enum class LabelType { kBinary, kNumber };
inline constexpr Choice<LabelType> kLabelTypes[] = {{"binary", LabelType::kBinary},
                                                    {"number", LabelType::kNumber}};

/// How a column becomes the label of a row.
struct LabelConfig {
  static constexpr std::string_view kPlain = "column";
  static constexpr std::int64_t kMaxClasses = 1000;

  std::string column = "label";
  LabelType type = LabelType::kBinary;
  std::vector<std::string> positive = {};  // texts that mean 1; empty: the column holds numbers
  std::vector<std::string> negative = {};  // texts that mean 0; empty: any that is not positive
  std::vector<double> threshold = {};      // numbers of at least this mean 1; empty: 0 and 1 only
  std::int64_t classes = 0;                // the label is one of so many classes; 0: it is not
  std::vector<std::string> values = {};    // their texts; empty: their numbers, from 0
  double positive_weight = 1.0;            // of examples whose label is 1, in [1e-6, 1e6]
  void visit(ConfigVisitor& v);

  bool has_classes() const { return classes > 0; }
  bool is_number() const { return type == LabelType::kNumber; }
  bool is_binary() const { return !has_classes() && !is_number(); }
  /// Whether the column holds 0 and 1.
  bool is_plain() const { return is_binary() && positive.empty() && threshold.empty(); }

  /// Whether this may be the label of a row, as it is read: 0 or 1, a finite number, or the number
  /// of a class.
  bool allows(float label) const;

  /// "class_0", or the texts of the classes; empty without classes.
  std::vector<std::string> class_names() const;

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

}  // namespace satrap::data
