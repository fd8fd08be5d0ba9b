#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace satrap::config_detail {

/// The place where a piece of configuration was written.
struct Source {
  std::string text;       // "train.yaml:12" or "command line: a.b=c"
  std::int64_t line = 0;  // in the file, from 1; 0: not in the file
};

/// One value of a config file, overrides merged in. (yaml-cpp's own nodes accept duplicate keys and
/// share what is assigned, so they serve only for parsing.)
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  Source source = {};
  std::string text = {};               // scalar
  bool quoted = false;                 // scalar: a string whatever it looks like
  std::vector<Node> children = {};     // elements of a list, values of a map
  std::vector<std::string> keys = {};  // of a map: keys[i] names children[i]

  const Node* find(std::string_view key) const;  // in a map; null: not there
  Node* find(std::string_view key);
};

/// The key of a scalar or list in the map that an override has made of it: `model: dlrm` and
/// `model.top=[16]`. No file has it.
inline constexpr std::string_view kPlainKey = "";
Node with_plain(Node plain);

/// The problems of one config, all shown at once, in the order of their lines.
class Problems {
 public:
  void add(const Source& source, const std::string& path, const std::string& what);
  void throw_if_any() const;  // Error(kInvalidConfig), one line per problem

 private:
  std::multimap<std::int64_t, std::string> problems_;  // by line; the command line's are last
};

/// "a.b" and "c" give "a.b.c"; the root's path is empty.
std::string join_path(const std::string& parent, std::string_view name);
std::vector<std::string> split_path(std::string_view path);

/// Parses the text of a file of this name. Throws Error(kInvalidConfig) if it is not YAML.
Node parse_text(const std::string& text, const std::string& path, Problems& problems);

/// Reads a YAML file. Throws Error(kInvalidConfig) if it cannot be read or is not YAML.
Node parse_file(const std::string& path, Problems& problems);

/// Applies an override, `key.path=value` or `~key.path`, to `root`.
void apply_override(Node& root, const std::string& text, Problems& problems);

}  // namespace satrap::config_detail
