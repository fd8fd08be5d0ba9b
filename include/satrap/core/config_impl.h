#pragma once

// The visitors behind load_config, dump_config and explain_config. Included by config.h; not for
// use by anybody else.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "satrap/core/config.h"

namespace satrap::config_detail {

/// Fills what it visits from a file and overrides, collecting problems until finish().
class Reader final : public ConfigVisitor {
 public:
  /// `known_keys`: dotted paths of the whole config, to suggest a key from another section.
  Reader(const std::string& path,
         const std::vector<std::string>& overrides,
         std::vector<std::string> known_keys);
  ~Reader() override;

  /// To be called after the visit of the root. Throws if there was any problem.
  ConfigOrigins finish();

  void field(std::string_view name, bool& value, std::string_view doc) override;
  void field(std::string_view name,
             std::int64_t& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             double& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::string& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<std::int64_t>& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<double>& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<std::string>& value,
             std::string_view doc,
             const FieldRule& rule) override;

 protected:
  bool enter_section(std::string_view name, std::string_view doc) override;
  bool enter_section_or_preset(std::string_view name,
                               std::string& preset,
                               std::string_view doc) override;
  void leave_section() override;
  bool enter_list(std::string_view name, std::int64_t& size, std::string_view doc) override;
  void enter_element(std::int64_t index) override;
  void leave_list() override;
  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>& keys,
                                       std::string_view doc) override;
  bool enter_entry(const std::string& key) override;
  void leave_named() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes what it visits as YAML.
class Dumper final : public ConfigVisitor {
 public:
  std::string take_text() { return std::move(text_); }

  void field(std::string_view name, bool& value, std::string_view doc) override;
  void field(std::string_view name,
             std::int64_t& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             double& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::string& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<std::int64_t>& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<double>& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<std::string>& value,
             std::string_view doc,
             const FieldRule& rule) override;

 protected:
  bool enter_section(std::string_view name, std::string_view doc) override;
  bool enter_section_or_preset(std::string_view name,
                               std::string& preset,
                               std::string_view doc) override;
  void leave_section() override;
  bool enter_list(std::string_view name, std::int64_t& size, std::string_view doc) override;
  void enter_element(std::int64_t index) override;
  void leave_list() override;
  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>& keys,
                                       std::string_view doc) override;
  bool enter_entry(const std::string& key) override;
  void leave_named() override;

 private:
  void open(std::string_view key);
  void close(std::string_view if_empty);
  void line(std::string_view key, const std::string& value);

  std::string text_;
  std::vector<std::size_t> begins_;  // where the content of each open section begins
  bool dash_ = false;                // the next line is the first of a list element
};

/// Collects the documentation of what it visits.
class Explainer final : public ConfigVisitor {
 public:
  Explainer();
  ~Explainer() override;

  std::vector<std::string> keys() const;  // dotted paths, `*` for an element or entry
  std::string explain(const std::string& path) const;

  void field(std::string_view name, bool& value, std::string_view doc) override;
  void field(std::string_view name,
             std::int64_t& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             double& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::string& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<std::int64_t>& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<double>& value,
             std::string_view doc,
             const FieldRule& rule) override;
  void field(std::string_view name,
             std::vector<std::string>& value,
             std::string_view doc,
             const FieldRule& rule) override;

 protected:
  bool enter_section(std::string_view name, std::string_view doc) override;
  bool enter_section_or_preset(std::string_view name,
                               std::string& preset,
                               std::string_view doc) override;
  void leave_section() override;
  bool enter_list(std::string_view name, std::int64_t& size, std::string_view doc) override;
  void enter_element(std::int64_t index) override;
  void leave_list() override;
  std::vector<std::string> enter_named(std::string_view name,
                                       const std::vector<std::string>& keys,
                                       std::string_view doc) override;
  bool enter_entry(const std::string& key) override;
  void leave_named() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace satrap::config_detail

namespace satrap {

template <ConfigStruct T>
ConfigOrigins load_config(T& config,
                          const std::string& path,
                          const std::vector<std::string>& overrides) {
  T scratch{};
  config_detail::Explainer explainer;
  scratch.visit(explainer);
  config_detail::Reader reader(path, overrides, explainer.keys());
  T loaded = config;
  loaded.visit(reader);
  ConfigOrigins origins = reader.finish();
  config = std::move(loaded);
  return origins;
}

template <ConfigStruct T>
std::string dump_config(T config) {
  config_detail::Dumper dumper;
  config.visit(dumper);
  return dumper.take_text();
}

template <ConfigStruct T>
std::string explain_config(const std::string& path) {
  T config{};
  config_detail::Explainer explainer;
  config.visit(explainer);
  return explainer.explain(path);
}

}  // namespace satrap
