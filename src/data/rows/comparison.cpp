#include "src/data/rows/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/data/rows/field_parse.h"

namespace satrap::data {
namespace {

template <class T>
bool is_ordered(Comparison::Operator op, const T& value, const T& operand) {
  switch (op) {
    case Comparison::Operator::kLess:
      return value < operand;
    case Comparison::Operator::kLessOrEqual:
      return value <= operand;
    case Comparison::Operator::kGreater:
      return value > operand;
    case Comparison::Operator::kGreaterOrEqual:
      return value >= operand;
    default:
      return value == operand;
  }
}

/// Whether is_ordered is true of some value between these two.
template <class T>
bool is_ordered_within(Comparison::Operator op,
                       const T& least,
                       const T& greatest,
                       const T& operand) {
  const bool is_upper =
      op == Comparison::Operator::kGreater || op == Comparison::Operator::kGreaterOrEqual;
  if (op == Comparison::Operator::kEqual) return least <= operand && operand <= greatest;
  return is_ordered(op, is_upper ? greatest : least, operand);
}

/// Whether a text is a date, or a date and a time, or begins one with whole numbers.
bool begins_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000000000";
  if (text.size() > kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i]) return false;
  }
  const std::size_t size = text.size();
  return size == 0 || size == 4 || size == 7 || size == 10 || size == 13 || size == 16 ||
         size == 19 || size > 20;
}

}  // namespace

Comparison::Comparison(std::string column,
                       Operator op,
                       const std::vector<Value>& values,
                       bool has_decimal_comma)
    : column_(std::move(column)), operator_(op), has_decimal_comma_(has_decimal_comma) {
  for (const Value& value : values) {
    Operand& operand = operands_.emplace_back(Operand{.text = value.text, .number = {}});
    if (!value.is_quoted) operand.number = number_of(value.text);
    has_numbers_ |= operand.number.has_value();
  }
}

std::optional<Comparison::Number> Comparison::number_of(std::string_view text) const {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (std::int64_t integer = 0; whole_of(text, integer)) return static_cast<Number>(integer);
  if (std::uint64_t integer = 0; whole_of(text, integer)) return static_cast<Number>(integer);
  if (double real = 0; whole_of(text, real)) {
    return std::isnan(real) ? std::nullopt : std::optional(static_cast<Number>(real));
  }
  if (double truth = 0; is_truth_value(text, truth)) return static_cast<Number>(truth);
  const std::size_t comma = has_decimal_comma_ ? text.find(',') : std::string_view::npos;
  if (comma == std::string_view::npos) return std::nullopt;
  std::string with_point(text);
  with_point[comma] = '.';
  double real = 0;
  return whole_of(with_point, real) && !std::isnan(real) ? std::optional(static_cast<Number>(real))
                                                         : std::nullopt;
}

bool Comparison::holds(std::string_view text) const {
  const bool is_negated = operator_ == Operator::kNotEqual;
  if (text.empty() && operator_ != Operator::kEqual && !is_negated) return false;
  const std::optional<Number> number = has_numbers_ ? number_of(text) : std::nullopt;
  const bool is_any = std::ranges::any_of(operands_, [&](const Operand& operand) {
    if (operand.number) return number && is_ordered(operator_, *number, *operand.number);
    return is_ordered(operator_, text, std::string_view(operand.text));
  });
  return is_any != is_negated;
}

std::string Comparison::no_time() const {
  const auto at = std::ranges::find_if(operands_, [](const Operand& operand) {
    return operand.number.has_value() || !begins_time(operand.text);
  });
  return at == operands_.end() ? "" : at->text;
}

bool Comparison::may_hold(const ColumnBounds& bounds) const {
  if (operator_ == Operator::kNotEqual || holds("")) return true;
  return std::ranges::any_of(operands_, [&](const Operand& operand) {
    // Numbers are not in the order of their texts, nor texts in that of the numbers they may be.
    if (operand.number.has_value() != bounds.are_numbers) return true;
    if (!bounds.are_numbers) {
      return is_ordered_within(operator_, bounds.least, bounds.greatest, operand.text);
    }
    const std::optional<Number> least = number_of(bounds.least);
    const std::optional<Number> greatest = number_of(bounds.greatest);
    return !least || !greatest || is_ordered_within(operator_, *least, *greatest, *operand.number);
  });
}

}  // namespace satrap::data
