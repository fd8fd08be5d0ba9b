#include "src/core/config_node.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "satrap/core/error.h"
#include "satrap/core/text.h"

namespace satrap::config_detail {

const Node* Node::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &children[static_cast<std::size_t>(found - keys.begin())];
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node with_plain(Node plain) {
  Node section{.kind = Node::Kind::kMap, .source = plain.source};
  section.keys.emplace_back(kPlainKey);
  section.children.push_back(std::move(plain));
  return section;
}

void Problems::add(const Source& source, const std::string& path, const std::string& what) {
  std::string text = source.text;
  if (!path.empty()) text += ": " + path;
  const std::int64_t rank = source.line == 0 ? INT64_MAX : source.line;
  // The lines of an error are problems: a value must not add one.
  problems_.emplace(rank, printable(text + ": " + what));
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  std::string text;
  for (const auto& [rank, problem] : problems_) {
    if (!text.empty()) text += '\n';
    text += problem;
  }
  throw Error(ErrorCode::kInvalidConfig, text);
}

std::string join_path(const std::string& parent, std::string_view name) {
  std::string path = parent;
  if (!path.empty()) path += '.';
  return path.append(name);
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
    if (path.empty()) parts.emplace_back();  // "a." has an empty last part
  }
  return parts;
}

namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{16} << 20;  // /dev/zero has no end

/// The values of a configuration are written into checkpoints, which hold UTF-8 alone.
void require_utf8(std::string_view text, const std::string& path) {
  if (is_utf8(text)) return;
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    if (!is_utf8(text.substr(0, size))) {
      throw Error(ErrorCode::kInvalidConfig,
                  concat(path, ":", line,
                         ": is not UTF-8; convert the file, and data that have such "
                         "names: iconv -f latin1 -t utf-8 ",
                         path));
    }
    text.remove_prefix(size);
  }
}

std::string read_text(const std::string& path) {
  const auto fail = [&] {
    throw Error(ErrorCode::kInvalidConfig, concat("cannot read ", path, ": ", strerror(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) fail();
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t size = std::fread(buffer, 1, sizeof(buffer), file.get())) {
    text.append(buffer, size);
    if (std::ssize(text) > kMaxFileBytes) {
      throw Error(ErrorCode::kInvalidConfig, concat(path, ": longer than a configuration may be, ",
                                                    format_bytes(kMaxFileBytes)));
    }
  }
  if (std::ferror(file.get()) != 0) fail();
  require_utf8(text, path);
  return text;
}

// Turns yaml-cpp's nodes into ours. Aliases are copied, so their total is bounded.
class Converter {
 public:
  // Line numbers are those of `file`, unless everything comes from `command_line`.
  Converter(std::string file, const Source* command_line, Problems& problems)
      : file_(std::move(file)), command_line_(command_line), problems_(problems) {}

  Node convert(const YAML::Node& yaml, const Source& source, const std::string& path, int depth) {
    constexpr int kMaxDepth = 64;
    constexpr std::int64_t kMaxNodes = 1'000'000;
    Node node;
    node.source = source;
    if (depth > kMaxDepth || ++num_nodes_ > kMaxNodes) {
      if (!std::exchange(too_large_, true)) problems_.add(source, path, "nested too deep, or huge");
      return node;
    }
    if (yaml.IsScalar()) {
      node.kind = Node::Kind::kScalar;
      node.text = yaml.Scalar();
      // The tag of a plain scalar is "?", of a quoted one "!".
      node.quoted = yaml.Tag() == "!" || yaml.Tag() == "tag:yaml.org,2002:str";
    } else if (yaml.IsSequence()) {
      node.kind = Node::Kind::kList;
      for (const YAML::Node& element : yaml) {
        const std::string child_path = join_path(path, std::to_string(node.children.size()));
        node.children.push_back(convert(element, source_of(element), child_path, depth + 1));
      }
    } else if (yaml.IsMap()) {
      node.kind = Node::Kind::kMap;
      for (const auto& entry : yaml) add_entry(node, entry.first, entry.second, path, depth);
    }
    return node;
  }

  Source source_of(const YAML::Node& yaml) const {
    if (command_line_ != nullptr) return *command_line_;
    const std::int64_t line = yaml.Mark().line + 1;
    return {concat(file_, ":", line), line};
  }

 private:
  void add_entry(Node& node,
                 const YAML::Node& key,
                 const YAML::Node& value,
                 const std::string& path,
                 int depth) {
    const Source source = source_of(key);
    if (!key.IsScalar()) {
      problems_.add(source, path, "a key must be a plain name");
      return;
    }
    const std::string child_path = join_path(path, key.Scalar());
    if (const Node* first = node.find(key.Scalar())) {
      problems_.add(source, child_path, "duplicate key, first at " + first->source.text);
      return;
    }
    node.keys.push_back(key.Scalar());
    node.children.push_back(convert(value, source, child_path, depth + 1));
  }

  const std::string file_;
  const Source* const command_line_;
  Problems& problems_;
  std::int64_t num_nodes_ = 0;
  bool too_large_ = false;
};

// yaml-cpp's message for a syntax error, with help for the most common one.
std::string explain_syntax_error(const YAML::Exception& error) {
  std::string text = "not valid YAML: " + error.msg;
  if (error.msg.find("anchor") != std::string::npos) {
    text += " (a value that begins with * or & needs quotes)";
  }
  return text;
}

/// The begins of the documents of a text, up to the second.
class DocumentStarts final : public YAML::EventHandler {
 public:
  explicit DocumentStarts(const std::string& text) : stream_(text), parser_(stream_) {
    while (starts_.size() < 2 && parser_.HandleNextDocument(*this)) {
    }
  }
  const std::vector<YAML::Mark>& starts() const { return starts_; }

  /// Before a ',' that is in no list the parser stands still: every document begins there.
  bool stands_still() const { return starts_.size() > 1 && starts_[0].pos == starts_[1].pos; }

 private:
  using Mark = YAML::Mark;
  using Style = YAML::EmitterStyle::value;

  void OnDocumentStart(const Mark& mark) override { starts_.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override {}
  void OnAlias(const Mark&, YAML::anchor_t) override {}
  void OnScalar(const Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnMapEnd() override {}

  std::istringstream stream_;
  YAML::Parser parser_;
  std::vector<YAML::Mark> starts_;
};

bool is_null_word(std::string_view text) {
  return text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// The value of an override.
Node parse_value(const std::string& text,
                 const Source& source,
                 const std::string& path,
                 Problems& problems) {
  Node node;
  node.source = source;
  if (text.empty() || std::string_view("[{\"'").find(text.front()) == std::string_view::npos) {
    if (is_null_word(text)) return node;
    node.kind = Node::Kind::kScalar;
    node.text = text;
    return node;
  }
  try {
    return Converter("", &source, problems).convert(YAML::Load(text), source, path, 0);
  } catch (const YAML::Exception& error) {
    problems.add(source, "", explain_syntax_error(error));
    return node;
  }
}

// The child `part` of `node`, created if necessary. Null if there can be none: a problem is added.
Node* descend(Node& node,
              const std::string& part,
              const std::string& path,
              const Source& source,
              Problems& problems) {
  if (node.kind == Node::Kind::kList) {
    std::size_t index = 0;
    const char* end = part.data() + part.size();
    const auto parsed = std::from_chars(part.data(), end, index);
    if (parsed.ec == std::errc() && parsed.ptr == end && index < node.children.size()) {
      return &node.children[index];
    }
    problems.add(source, path,
                 concat("a list of ", node.children.size(), " (", node.source.text,
                        ") has no element ", part));
    return nullptr;
  }
  if (node.kind == Node::Kind::kScalar) node = with_plain(std::move(node));
  if (node.kind == Node::Kind::kNull) {
    node.kind = Node::Kind::kMap;
    if (node.source.text.empty()) node.source = source;
  }
  if (Node* child = node.find(part)) return child;
  node.keys.push_back(part);
  node.children.push_back({.source = source});
  return &node.children.back();
}

}  // namespace

Node parse_file(const std::string& path, Problems& problems) {
  return parse_text(read_text(path), path, problems);
}

Node parse_text(const std::string& text, const std::string& path, Problems& problems) {
  try {
    const DocumentStarts documents(text);
    Node root;
    root.source = {path, 1};
    if (documents.starts().empty()) return root;
    if (documents.stands_still()) {
      throw YAML::ParserException(documents.starts()[0], "a ',' that is in no list");
    }
    Converter converter(path, nullptr, problems);
    if (documents.starts().size() > 1) {
      const std::int64_t line = documents.starts()[1].line + 1;
      problems.add({concat(path, ":", line), line}, "",
                   "one YAML document expected, here begins another");
    }
    const YAML::Node document = YAML::Load(text);
    root = converter.convert(document, root.source, "", 0);
    if (root.kind == Node::Kind::kScalar || root.kind == Node::Kind::kList) {
      problems.add(converter.source_of(document), "", "expected lines of the form key: value");
      root = {.source = root.source};
    }
    return root;
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kInvalidConfig,
                concat(path, ":", error.mark.line + 1, ": ", explain_syntax_error(error)));
  }
}

namespace {

/// Removes the value at `parts`. Without one: a problem.
void take_back(Node& root,
               const std::vector<std::string>& parts,
               const Source& source,
               Problems& problems) {
  Node* parent = &root;
  for (std::size_t i = 0; i + 1 < parts.size() && parent != nullptr; ++i) {
    parent = parent->find(parts[i]);
  }
  Node* const node = parent == nullptr ? nullptr : parent->find(parts.back());
  if (node == nullptr)
    return problems.add(source, "", "nothing has been written that it takes back");
  const auto at = node - parent->children.data();
  parent->keys.erase(parent->keys.begin() + at);
  parent->children.erase(parent->children.begin() + at);
}

}  // namespace

void apply_override(Node& root, const std::string& text, Problems& problems) {
  const Source source{"command line: " + printable(text), 0};
  const bool takes_back = text.starts_with('~');
  const std::size_t equals = takes_back ? text.size() : text.find('=');
  const std::string key = takes_back ? text.substr(1) : text.substr(0, equals);
  const std::vector<std::string> parts = split_path(key);
  if (equals == std::string::npos || parts.empty() ||
      std::find(parts.begin(), parts.end(), "") != parts.end()) {
    problems.add(source, "", "expected key.path=value or ~key.path");
    return;
  }
  if (takes_back) return take_back(root, parts, source, problems);
  Node* node = &root;
  std::string path;
  for (const std::string& part : parts) {
    node = descend(*node, part, path, source, problems);
    if (node == nullptr) return;
    path = join_path(path, part);
  }
  *node = parse_value(text.substr(equals + 1), source, path, problems);
}

}  // namespace satrap::config_detail
