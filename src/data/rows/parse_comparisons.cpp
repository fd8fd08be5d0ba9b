#include <array>
#include <utility>

#include "satrap/core/error.h"
#include "src/data/rows/comparison.h"
#include "src/data/rows/field_parse.h"

namespace satrap::data {
namespace {

using Operator = Comparison::Operator;

constexpr std::array<std::pair<std::string_view, Operator>, 8> kOperators{{
    {"=", Operator::kEqual},
    {"==", Operator::kEqual},
    {"!=", Operator::kNotEqual},
    {"<>", Operator::kNotEqual},
    {"<", Operator::kLess},
    {"<=", Operator::kLessOrEqual},
    {">", Operator::kGreater},
    {">=", Operator::kGreaterOrEqual},
}};

constexpr const char* kForm =
    "comparisons joined by `and`, such as day >= 2026-11-01 and country in (US, DE)";

/// Cuts the text into words, quoted texts, operators, and brackets and commas.
class Tokens {
 public:
  enum class Kind : std::uint8_t { kEnd, kWord, kQuoted, kOperator, kMark };
  struct Token {
    Kind kind = Kind::kEnd;
    std::string text;
  };

  explicit Tokens(std::string_view text) : rest_(text) { advance(); }

  const Token& next() const { return next_; }
  bool is_mark(std::string_view mark) const {
    return next_.kind == Kind::kMark && next_.text == mark;
  }
  bool is_keyword(std::string_view word) const {
    return next_.kind == Kind::kWord && is_word(next_.text, word);
  }

  Token take() {
    Token taken = std::move(next_);
    advance();
    return taken;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    const std::string got = next_.kind == Kind::kEnd ? "the end" : concat("'", next_.text, "'");
    throw Error(ErrorCode::kInvalidConfig,
                concat("expected ", expected, ", got ", got, "; write ", kForm));
  }

 private:
  static constexpr std::string_view kSpaces = " \t\r\n";
  static constexpr std::string_view kOperatorBytes = "=!<>";
  static constexpr std::string_view kMarks = "(),";

  void advance() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpaces), rest_.size()));
    if (rest_.empty()) {
      next_ = {};
    } else if (rest_.front() == '\'' || rest_.front() == '"') {
      next_ = {Kind::kQuoted, take_quoted()};
    } else if (kMarks.find(rest_.front()) != std::string_view::npos) {
      next_ = {Kind::kMark, take_bytes(1)};
    } else if (kOperatorBytes.find(rest_.front()) != std::string_view::npos) {
      next_ = {Kind::kOperator, take_bytes(rest_.find_first_not_of(kOperatorBytes))};
    } else {
      next_ = {Kind::kWord, take_bytes(rest_.find_first_of(" \t\r\n=!<>(),'\""))};
    }
  }

  std::string take_bytes(std::size_t size) {
    std::string bytes(rest_.substr(0, size));
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  std::string take_quoted() {
    const char quote = rest_.front();
    std::string text;
    for (std::size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == quote && (at + 1 == rest_.size() || rest_[at + 1] != quote)) {
        rest_.remove_prefix(at + 1);
        return text;
      }
      text += rest_[at];
      if (rest_[at] == quote) ++at;
    }
    throw Error(ErrorCode::kInvalidConfig, concat("the quote of ", rest_, " is not closed"));
  }

  std::string_view rest_;
  Token next_;
};

bool is_value(const Tokens& tokens) {
  return tokens.next().kind == Tokens::Kind::kWord || tokens.next().kind == Tokens::Kind::kQuoted;
}

Comparison::Value take_value(Tokens& tokens) {
  if (!is_value(tokens)) tokens.fail("a value");
  const bool is_quoted = tokens.next().kind == Tokens::Kind::kQuoted;
  return {.text = tokens.take().text, .is_quoted = is_quoted};
}

std::vector<Comparison::Value> take_list(Tokens& tokens) {
  if (!tokens.is_mark("(")) tokens.fail("( after `in`");
  std::vector<Comparison::Value> values;
  do {
    tokens.take();
    values.push_back(take_value(tokens));
  } while (tokens.is_mark(","));
  if (!tokens.is_mark(")")) tokens.fail(", or )");
  tokens.take();
  return values;
}

Comparison take_comparison(Tokens& tokens, bool has_decimal_comma) {
  if (!is_value(tokens)) tokens.fail("the name of a column");
  const std::string column = tokens.take().text;
  if (tokens.next().kind == Tokens::Kind::kOperator) {
    for (const auto& [text, op] : kOperators) {
      if (tokens.next().text != text) continue;
      tokens.take();
      return {column, op, {take_value(tokens)}, has_decimal_comma};
    }
  }
  const bool is_not = tokens.is_keyword("not");
  if (is_not) tokens.take();
  if (!tokens.is_keyword("in")) {
    tokens.fail(is_not ? "`in` after `not`"
                       : concat("=, !=, <, <=, >, >=, in or not in after '", column, "'"));
  }
  tokens.take();
  return {column, is_not ? Operator::kNotEqual : Operator::kEqual, take_list(tokens),
          has_decimal_comma};
}

}  // namespace

std::vector<Comparison> parse_comparisons(std::string_view text, bool has_decimal_comma) {
  Tokens tokens(text);
  std::vector<Comparison> comparisons;
  while (true) {
    comparisons.push_back(take_comparison(tokens, has_decimal_comma));
    if (tokens.next().kind == Tokens::Kind::kEnd) return comparisons;
    if (!tokens.is_keyword("and")) tokens.fail("`and` or the end");
    tokens.take();
  }
}

}  // namespace satrap::data
