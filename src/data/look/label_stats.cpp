#include "src/data/look/label_stats.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "satrap/core/text.h"

namespace satrap::data {

LabelStats::LabelStats(const Schema& schema) : schema_(schema) {
  for (const NamedLabelConfig& label : schema.labels) {
    labels_.emplace_back().of_class.resize(static_cast<std::size_t>(label.source.classes));
  }
}

void LabelStats::add(const RowBlock& block, std::size_t row) {
  for (std::size_t l = 0; l < labels_.size(); ++l) {
    const float value = block.labels[row * labels_.size() + l];
    if (std::isnan(value)) continue;
    Label& label = labels_[l];
    label.least = label.count == 0 ? value : std::min(label.least, value);
    label.most = label.count == 0 ? value : std::max(label.most, value);
    label.sum += static_cast<double>(value);
    ++label.count;
    if (!label.of_class.empty()) ++label.of_class[static_cast<std::size_t>(value)];
  }
}

/// Without "positive", which is said once.
std::string LabelStats::text_of(std::size_t l) const {
  const LabelConfig& config = schema_.labels[l].source;
  const Label& label = labels_[l];
  const auto count = static_cast<double>(label.count);
  const std::string name = labels_.size() > 1 ? schema_.labels[l].name + " " : "";
  if (label.count == 0) return name + "-";
  if (config.is_number()) {
    return fmt::format("{}mean {:.4f}, {} to {}", name, label.sum / count, label.least, label.most);
  }
  if (config.has_classes()) {
    const auto most = std::ranges::max_element(label.of_class);
    const auto at = static_cast<std::size_t>(most - label.of_class.begin());
    return fmt::format("{} in {:.4f}%", printable(config.class_names()[at]),
                       100.0 * static_cast<double>(*most) / count);
  }
  return fmt::format("{}{:.4f}%", name, 100.0 * label.sum / count);
}

std::string LabelStats::text() const {
  std::string text;
  for (std::size_t l = 0; l < labels_.size(); ++l) {
    const bool is_binary = schema_.labels[l].source.is_binary();
    const bool is_last =
        l + 1 == labels_.size() || is_binary != schema_.labels[l + 1].source.is_binary();
    text += (l > 0 ? ", " : "") + text_of(l) + (is_binary && is_last ? " positive" : "");
  }
  return text + (schema_.share_of_negatives < 1.0 ? " of those read" : "");
}

}  // namespace satrap::data
