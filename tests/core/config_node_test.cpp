#include "src/core/config_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::config_detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string said_of(const Problems& problems) {
  try {
    problems.throw_if_any();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidConfig);
    return error.what();
  }
  return "";
}

/// The node as text: maps {k: v}, lists [v], quoted scalars "v", null ~.
std::string show_node(const Node& node) {
  std::string text;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) text += ", ";
    if (node.kind == Node::Kind::kMap) text += node.keys[i] + ": ";
    text += show_node(node.children[i]);
  }
  if (node.kind == Node::Kind::kMap) return "{" + text + "}";
  if (node.kind == Node::Kind::kList) return "[" + text + "]";
  if (node.kind == Node::Kind::kNull) return "~";
  return node.quoted ? "\"" + node.text + "\"" : node.text;
}

Node parsed(const std::string& text) {
  Problems problems;
  Node node = parse_text(text, "a.yaml", problems);
  EXPECT_EQ(said_of(problems), "");
  return node;
}

TEST(ConfigNode, EveryKindIsRead) {
  EXPECT_EQ(show_node(parsed("")), "~");
  EXPECT_EQ(show_node(parsed("a: 1\nb: [x, 'y', ~]\nc: {d: null, e: {}}\n")),
            "{a: 1, b: [x, \"y\", ~], c: {d: ~, e: {}}}");
}

TEST(ConfigNode, EveryPieceKnowsItsLine) {
  const Node root = parsed("a: 1\n\nb:\n  c: [x,\n      y]\n");
  EXPECT_EQ(root.find("a")->source.text, "a.yaml:1");
  const Node* const c = root.find("b")->find("c");
  EXPECT_EQ(c->source.line, 4);
  EXPECT_EQ(c->children[1].source.text, "a.yaml:5");
}

TEST(ConfigNode, FindsKeysOfAMapOnly) {
  Node root = parsed("a: 1\nb: [a]\n");
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("c"), nullptr);
  EXPECT_EQ(root.find("b")->find("a"), nullptr);
  EXPECT_EQ(root.find("a")->find("a"), nullptr);
  root.find("a")->text = "2";
  EXPECT_EQ(show_node(root), "{a: 2, b: [a]}");
}

TEST(ConfigNode, ADuplicateKeyIsAProblemAndTheFirstStays) {
  Problems problems;
  const Node root = parse_text("a:\n  b: 1\n  b: 2\n", "a.yaml", problems);
  EXPECT_EQ(show_node(root), "{a: {b: 1}}");
  EXPECT_EQ(said_of(problems), "a.yaml:3: a.b: duplicate key, first at a.yaml:2");
}

TEST(ConfigNode, WhatIsNoMapIsAProblem) {
  for (const char* text : {"7", "[a, b]"}) {
    Problems problems;
    EXPECT_EQ(show_node(parse_text(text, "a.yaml", problems)), "~") << text;
    EXPECT_EQ(said_of(problems), "a.yaml:1: expected lines of the form key: value");
  }
}

TEST(ConfigNode, WhatIsNotYamlIsAnErrorWithItsLine) {
  Problems problems;
  try {
    parse_text("a: 1\nb: [2\n", "a.yaml", problems);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("a.yaml:3: not valid YAML"));
  }
  EXPECT_THROW(parse_file("/no/such.yaml", problems), Error);
}

TEST(ConfigNode, ProblemsAreInTheOrderOfLinesAndTheCommandLinesAreLast) {
  Problems problems;
  problems.throw_if_any();
  problems.add({"command line: a=1", 0}, "a", "third");
  problems.add({"a.yaml:7", 7}, "b.c", "second");
  problems.add({"a.yaml:2", 2}, "", "first");
  EXPECT_EQ(said_of(problems),
            "a.yaml:2: first\na.yaml:7: b.c: second\ncommand line: a=1: a: third");
}

TEST(ConfigNode, PathsAreSplitAndJoinedAtDots) {
  EXPECT_THAT(split_path(""), IsEmpty());
  EXPECT_THAT(split_path("a"), ElementsAre("a"));
  EXPECT_THAT(split_path("a.b.0"), ElementsAre("a", "b", "0"));
  EXPECT_THAT(split_path("a..b"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_path("a."), ElementsAre("a", ""));
  EXPECT_THAT(split_path("."), ElementsAre("", ""));
  EXPECT_EQ(join_path("", "a"), "a");
  EXPECT_EQ(join_path("a.b", "c"), "a.b.c");
}

/// `text` after an override; a problem appears as it is shown.
std::string overridden(const std::string& text, const std::string& change) {
  Node root = parsed(text);
  Problems problems;
  apply_override(root, change, problems);
  const std::string problem = said_of(problems);
  return problem.empty() ? show_node(root) : problem;
}

TEST(ConfigNode, AnOverrideSetsAValueAndMakesItsParents) {
  EXPECT_EQ(overridden("", "a.b=1"), "{a: {b: 1}}");
  EXPECT_EQ(overridden("a: 1\n", "a=2"), "{a: 2}");
  EXPECT_EQ(overridden("a: {b: 1}\n", "a.c='x'"), "{a: {b: 1, c: \"x\"}}");
  EXPECT_EQ(overridden("a: [x, y]\n", "a.1=z"), "{a: [x, z]}");
  EXPECT_EQ(overridden("a: 1\n", "a=b=c"), "{a: b=c}");
  EXPECT_EQ(overridden("a: 1\n", "a=null"), "{a: ~}");
  EXPECT_EQ(overridden("a: 1\n", "a="), "{a: }");
}

TEST(ConfigNode, AnOverrideReplacesAnything) {
  EXPECT_EQ(overridden("a: {b: 1, c: 2}\n", "a={c: 3, d: [4]}"), "{a: {c: 3, d: [4]}}");
  EXPECT_EQ(overridden("a: [1, 2]\n", "a=[3]"), "{a: [3]}");
  EXPECT_EQ(overridden("a: {b: 1}\n", "a=x"), "{a: x}");
}

TEST(ConfigNode, AnOverrideStandsBesideAPlainValue) {
  EXPECT_EQ(overridden("a: x\n", "a.b=z"), "{a: {: x, b: z}}");
}

TEST(ConfigNode, AnOverrideTakesBack) {
  EXPECT_EQ(overridden("a: {b: 1, c: 2}\n", "~a.b"), "{a: {c: 2}}");
  EXPECT_EQ(overridden("a: {b: 1, c: 2}\n", "~a"), "{}");
  EXPECT_THAT(overridden("a: 1\n", "~b"), HasSubstr("nothing has been written"));
  EXPECT_THAT(overridden("a: 1\n", "~a.b"), HasSubstr("nothing has been written"));
}

TEST(ConfigNode, AnOverrideThatFitsNowhereIsAProblem) {
  for (const char* change : {"a", "=1", "a..b=1", ".=1", "a.=1"}) {
    EXPECT_EQ(overridden("", change),
              concat("command line: ", change, ": expected key.path=value or ~key.path"));
  }
  EXPECT_THAT(overridden("a: [x, y]\n", "a.2=z"),
              HasSubstr("a: a list of 2 (a.yaml:1) has no element 2"));
  EXPECT_THAT(overridden("", "a=[1"), HasSubstr("not valid YAML"));
}

}  // namespace
}  // namespace satrap::config_detail
