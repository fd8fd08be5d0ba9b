#include <algorithm>

#include "satrap/core/config.h"
#include "src/core/config_node.h"

namespace satrap {
namespace {

using config_detail::join_path;
using config_detail::Node;
using Values = std::vector<ConfigValue>;

bool is_plain(const Node& node) {
  return node.kind == Node::Kind::kScalar || node.kind == Node::Kind::kNull;
}

std::string join_scalars(const std::vector<Node>& scalars) {
  std::string text;
  for (const Node& scalar : scalars) text += (text.empty() ? "" : ", ") + scalar.text;
  return "[" + text + "]";
}

void collect(const Node& node, const std::string& path, Values& values) {
  if (is_plain(node)) {
    values.push_back({path, node.text});
  } else if (node.kind == Node::Kind::kMap) {
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      collect(node.children[i], join_path(path, node.keys[i]), values);
    }
  } else if (std::ranges::all_of(node.children, is_plain)) {
    values.push_back({path, join_scalars(node.children)});
  } else {
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      collect(node.children[i], join_path(path, std::to_string(i)), values);
    }
  }
}

}  // namespace

Values config_values(const std::string& yaml, const std::string& name) {
  config_detail::Problems problems;
  const Node root = config_detail::parse_text(yaml, name, problems);
  problems.throw_if_any();
  Values values;
  if (!is_plain(root)) collect(root, "", values);
  return values;
}

}  // namespace satrap
