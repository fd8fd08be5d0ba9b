#include "src/core/config_scalar.h"

#include <charconv>
#include <cmath>

#include "satrap/core/error.h"

namespace satrap::config_detail {
namespace {

template <class Number>
std::errc number_of(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const char* begin = text.data();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++begin;
  const auto result = std::from_chars(begin, end, value);
  if (result.ec == std::errc() && result.ptr != end) return std::errc::invalid_argument;
  return result.ec;
}

}  // namespace

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "\"" + node.text + "\"";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a section";
  }
  return "";
}

std::string expected(const char* what, const Node& node) {
  return concat("expected ", what, ", got ", describe(node));
}

std::string parse(const Node& node, bool& value) {
  const bool is_true = node.text == "true";
  if (node.kind != Node::Kind::kScalar || node.quoted || (!is_true && node.text != "false")) {
    return expected("true or false", node);
  }
  value = is_true;
  return "";
}

std::string parse(const Node& node, std::int64_t& value) {
  if (node.kind != Node::Kind::kScalar || node.quoted) return expected("an integer", node);
  const std::errc status = number_of(node.text, value);
  if (status == std::errc::result_out_of_range) {
    return expected("an integer", node) + ", which does not fit into 64 bits";
  }
  return status == std::errc() ? "" : expected("an integer", node);
}

std::string parse(const Node& node, double& value) {
  if (node.kind != Node::Kind::kScalar || node.quoted) return expected("a number", node);
  const std::errc status = number_of(node.text, value);
  if (status == std::errc::result_out_of_range ||
      (status == std::errc() && !std::isfinite(value))) {
    return expected("a finite number", node);
  }
  return status == std::errc() ? "" : expected("a number", node);
}

std::string parse(const Node& node, std::string& value) {
  if (node.kind != Node::Kind::kScalar) return expected("a string", node);
  value = node.text;
  return "";
}

bool parse_index(const std::string& text, std::int64_t& index) {
  return number_of(text, index) == std::errc() && index >= 0;
}

}  // namespace satrap::config_detail
