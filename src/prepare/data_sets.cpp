#include "src/prepare/data_set.h"

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
    files.push_back({.names = {name + ".gz", name, name + ".zst"}, .md5 = ""});
  }
  return files;
}

std::vector<DataSet> make_data_sets() {
  return {
      {.name = "criteo",
       .text = "Criteo Display Advertising Challenge (Kaggle 2014): train.txt",
       .url = "https://ailab.criteo.com/ressources/",
       .files = {{joined(compressed_too("train.txt"), {"first10k.tsv"})}},
       .configuration = "dlrm.yaml",
       .published_rows = 45'840'617,
       .write = prepare_criteo},
      {.name = "criteo_1tb",
       .text = "Criteo 1TB Click Logs: day_0.gz to day_23.gz",
       .url = "https://huggingface.co/datasets/criteo/CriteoClickLogs",
       .files = days(),
       .configuration = "dlrm.yaml",
       .published_rows = 0,
       .write = prepare_criteo_1tb},
      {.name = "avazu",
       .text = "Avazu Click-Through Rate Prediction (Kaggle 2014): train.gz",
       .url = "https://www.kaggle.com/c/avazu-ctr-prediction",
       .files = {{{"train.gz", "train.csv", "train", "train.zst", "first10k.csv"}}},
       .configuration = "deepfm.yaml",
       .published_rows = 40'428'967,
       .write = prepare_avazu},
      {.name = "movielens",
       .text = "MovieLens ratings: ratings.csv (25M, 20M, latest), ratings.dat (1M, 10M), u.data",
       .url = "https://grouplens.org/datasets/movielens/",
       .files = {{joined(compressed_too("ratings.csv"), {"ratings.dat", "u.data"})}},
       .configuration = "din.yaml",
       .published_rows = 0,
       .write = prepare_movielens},
      {.name = "frappe",
       .text = "Frappe app usage in context (2015): frappe.csv",
       .url = "https://www.baltrunas.info/context-aware",
       .files = {{{"frappe.csv", "frappe.tsv", "train.csv"}}},
       .configuration = "deepfm.yaml",
       .published_rows = 0,
       .write = prepare_frappe},
      {.name = "taobao",
       .text = "Ali_Display_Ad_Click (Tianchi): raw_sample.csv and three more",
       .url = "https://tianchi.aliyun.com/dataset/56",
       .files = {{compressed_too("raw_sample.csv")},
                 {compressed_too("ad_feature.csv")},
                 {compressed_too("user_profile.csv")},
                 {compressed_too("behavior_log.csv")}},
       .configuration = "din.yaml",
       .published_rows = 26'557'961,
       .write = prepare_taobao},
      {.name = "adult",
       .text = "Adult, census income (UCI 1996): adult.data, adult.test",
       .url = "https://doi.org/10.24432/C5XW20",
       .files = {{compressed_too("adult.data"), "5d7c39d7b8804f071cdd1f2a7c460872"},
                 {compressed_too("adult.test"), "35238206dfdf7f1fe215bbb874adecdc"}},
       .configuration = "deepfm.yaml",
       .published_rows = 48'842,
       .write = prepare_adult},
      {.name = "kwai",
       .text = "videos, users and histories of the generator, at any scale: no files",
       .url = "",
       .files = {},
       .configuration = "dlrm.yaml",
       .published_rows = 0,
       .write = nullptr},
  };
}

}  // namespace

const std::vector<DataSet>& data_sets() {
  static const std::vector<DataSet> sets = make_data_sets();
  return sets;
}

}  // namespace satrap::prepare
