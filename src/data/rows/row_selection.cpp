#include "src/data/rows/row_selection.h"

#include <algorithm>
#include <utility>

#include "satrap/core/error.h"

namespace satrap::data {

std::shared_ptr<const RowSelection> RowSelection::of(const DataConfig& config, Role role) {
  const EvalConfig& eval = config.eval;
  const bool of_training = role == Role::kTrain || eval.is_part();
  const std::string& where = of_training ? config.train.where : eval.where;
  const bool is_divided = eval.is_part() && !eval.by_tail();
  if (where.empty() && !is_divided) return nullptr;
  RowSelection selection;
  selection.value_rule_ = config.schema.value_rule;
  const bool has_comma = config.schema.decimal == Decimal::kComma;
  selection.decimal_ = has_comma ? ',' : '.';
  if (is_divided) selection.divide(eval, role != Role::kTrain);
  if (!where.empty()) {
    selection.add_conditions(where, of_training ? "data.train.where" : "data.eval.where",
                             has_comma);
  }
  return std::make_shared<const RowSelection>(std::move(selection));
}

void RowSelection::divide(const EvalConfig& eval, bool is_evaluation) {
  part_.emplace(eval.fraction, is_evaluation);
  part_share_ = is_evaluation ? eval.fraction : 1.0 - eval.fraction;
  identity_ = concat("part: ", part_->identity(), '\n');
  if (!eval.by_column()) return;
  dividing_ = static_cast<std::int64_t>(place_of(eval.by, "data.eval.by"));
  columns_.back().divides_rows = true;
  identity_ += concat("by: ", eval.by, '\n');
  if (value_rule_ != 1) identity_ += concat("rule: ", value_rule_, '\n');
}

void RowSelection::add_conditions(const std::string& text,
                                  const std::string& key,
                                  bool has_decimal_comma) {
  condition_ = concat(key, ": ", text);
  identity_ += concat("where: ", text, '\n');
  try {
    for (Comparison& comparison : parse_comparisons(text, has_decimal_comma)) {
      const std::size_t place = place_of(comparison.column(), key);
      const auto test = std::ranges::find(tests_, place, &Test::place);
      Test& of_column = test != tests_.end() ? *test : tests_.emplace_back(Test{place, {}});
      if (columns_[place].no_time.empty()) columns_[place].no_time = comparison.no_time();
      of_column.comparisons.push_back(std::move(comparison));
    }
  } catch (const Error& error) {
    throw Error(error.code(), concat(key, ": ", error.what()));
  }
}

std::size_t RowSelection::place_of(const std::string& column, const std::string& reader) {
  const auto at = std::ranges::find(columns_, column, &Schema::SelectingColumn::column);
  const auto place = static_cast<std::size_t>(at - columns_.begin());
  if (at == columns_.end()) columns_.push_back({.column = column, .reader = reader});
  return place;
}

bool RowSelection::may_have_any(
    const std::function<std::optional<ColumnBounds>(std::size_t)>& bounds_of) const {
  return std::ranges::all_of(tests_, [&](const Test& test) {
    const std::optional<ColumnBounds> bounds = bounds_of(test.place);
    return !bounds || std::ranges::all_of(test.comparisons, [&](const Comparison& comparison) {
      return comparison.may_hold(*bounds);
    });
  });
}

Schema schema_of_role(Schema schema, const DataConfig& config, Role role) {
  const std::shared_ptr<const RowSelection> selection = RowSelection::of(config, role);
  schema.selecting = selection ? selection->columns() : std::vector<Schema::SelectingColumn>();
  schema.of_training = role == Role::kTrain;
  const bool of_training_files = role == Role::kTrain || config.eval.is_part();
  schema.negatives_read = schema.of_training ? config.train.negatives : 1.0;
  schema.share_of_negatives =
      of_training_files ? schema.negatives_read * config.train.negatives_in_files : 1.0;
  return schema;
}

}  // namespace satrap::data
