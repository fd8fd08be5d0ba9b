#include "data_set.h"

namespace satrap::prepare {
namespace {

std::vector<std::string> compressed_too(const std::string& name) {
  return {name, name + ".gz", name + ".zst"};
}

std::vector<std::string> joined(std::vector<std::string> names,
                                const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

std::vector<SourceFile> days() {
  constexpr int kTerabyteDays = 24;
  std::vector<SourceFile> files;
  for (int day = 0; day < kTerabyteDays; ++day) {
    const std::string name = "day_" + std::to_string(day);
    files.push_back({{name + ".gz", name, name + ".zst"}});
  }
  return files;
}

std::vector<DataSet> make_data_sets() {
  return {
      {.name = "criteo",
       .text = "Criteo Display Advertising Challenge (Kaggle 2014): train.txt",
       .url = "https://www.kaggle.com/c/criteo-display-ad-challenge",
       .files = {{joined(compressed_too("train.txt"), {"first10k.tsv"})}},
       .configuration = "dlrm.yaml",
       .published_rows = 45'840'617,
       .write = prepare_criteo},
      {.name = "criteo_1tb",
       .text = "Criteo 1TB Click Logs: day_0.gz to day_23.gz",
       .url = "https://huggingface.co/datasets/criteo/CriteoClickLogs",
       .files = days(),
       .configuration = "dlrm.yaml",
       .write = prepare_criteo_1tb},
      {.name = "avazu",
       .text = "Avazu Click-Through Rate Prediction (Kaggle 2014): train.gz",
       .url = "https://www.kaggle.com/c/avazu-ctr-prediction",
       .files = {{{"train.gz", "train.csv", "train", "train.zst", "first10k.csv"}}},
       .configuration = "deepfm.yaml",
       .published_rows = 40'428'967,
       .write = prepare_avazu},
  };
}

}  // namespace

const std::vector<DataSet>& data_sets() {
  static const std::vector<DataSet> sets = make_data_sets();
  return sets;
}

}  // namespace satrap::prepare
