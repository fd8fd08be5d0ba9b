#include "satrap/data/common_files.h"

#include <algorithm>

#include "satrap/core/error.h"
#include "satrap/core/file.h"
#include "satrap/core/text.h"
#include "satrap/data/file_prefix.h"
#include "src/data/files/file_list.h"

namespace satrap::data {
namespace {

bool has_same_content(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-") return false;
  try {
    const DataFile x = describe_file(a), y = describe_file(b);
    return x.is_regular() && x.bytes == y.bytes &&
           examine_prefix(a, x.bytes).checksum == examine_prefix(b, y.bytes).checksum;
  } catch (const Error&) {
    return false;
  }
}

/// None if they cannot be used: reading them reports why.
std::vector<std::string> paths_of(const Dataset& data, Role role) {
  try {
    return data.files(role).paths();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> common_files(const Dataset& data) {
  const DataConfig& config = data.config();
  if (config.eval.is_part() || data.is_generated()) return {};
  const bool have_conditions = !config.train.where.empty() && !config.eval.where.empty();
  if (have_conditions && config.train.where != config.eval.where) return {};  // of other rows
  const std::vector<std::string> trained = paths_of(data, Role::kTrain);
  std::vector<std::string> shared = paths_of(data, Role::kEval);
  std::erase_if(shared, [&](const std::string& path) {
    return std::ranges::none_of(trained,
                                [&](const auto& other) { return has_same_content(path, other); });
  });
  return shared;
}

std::string describe_common_files(const std::vector<std::string>& files) {
  SATRAP_CHECK(!files.empty(), "no file is shared");
  return concat("evaluation reads the same rows as training: '",
                printable(shown_path(files.front())), "'",
                files.size() > 1 ? concat(" and ", files.size() - 1, " more") : std::string(),
                "; auc and logloss say nothing of new rows; name other rows, or keep a part of the "
                "training rows: data.eval: {fraction: 0.1, by: hash}");
}

}  // namespace satrap::data
