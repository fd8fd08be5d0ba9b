#pragma once

#include <string>
#include <vector>

#include "satrap/data/sample.h"

namespace satrap::app {

/// The arguments of `satrap init`.
struct DraftRequest {
  std::vector<std::string> data;  // as data.train.path
  std::string label;              // column; empty: the one that looks most like a label
  std::string config;             // path of the configuration that is written
  data::SampleOptions text = {};  // what the user says of it
};

/// The configuration that `satrap init` writes for these data if nobody names another: the name of
/// the first file without its endings, in the working directory.
std::string default_config(const std::vector<std::string>& data);

/// Looks at the data, writes the configuration and returns what is to be told, in lines. Throws
/// Error; also if the configuration exists, unless `overwrite`.
std::string init_job(const DraftRequest& request, bool overwrite);

}  // namespace satrap::app
