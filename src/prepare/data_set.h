#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/prepare/workspace.h"

namespace satrap::prepare {

/// One file of a data set: any of these names, as published or as samples are called.
struct SourceFile {
  std::vector<std::string> names;
  std::string md5 = "";  // of the file that has the first name; empty: unknown
};

/// How the published files of one data set become parts.
struct DataSet {
  std::string name;
  std::string text;                 // what it is, for the list of data sets
  std::string url;                  // where its files are
  std::vector<SourceFile> files;    // empty: none, the data are generated
  std::string configuration;        // the one to try first
  std::int64_t published_rows = 0;  // of all splits; 0: unknown. Others are a sample
  void (*write)(Workspace& workspace, const std::vector<std::string>& paths) = nullptr;
};

const std::vector<DataSet>& data_sets();

// datasets/<name>/README.md says what each of them does. `paths`: those of DataSet::files.

void prepare_criteo(Workspace& workspace, const std::vector<std::string>& paths);
void prepare_criteo_1tb(Workspace& workspace, const std::vector<std::string>& paths);
void prepare_avazu(Workspace& workspace, const std::vector<std::string>& paths);
void prepare_movielens(Workspace& workspace, const std::vector<std::string>& paths);
void prepare_frappe(Workspace& workspace, const std::vector<std::string>& paths);
void prepare_taobao(Workspace& workspace, const std::vector<std::string>& paths);
void prepare_adult(Workspace& workspace, const std::vector<std::string>& paths);

}  // namespace satrap::prepare
