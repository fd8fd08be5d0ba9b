#include "satrap/data/data_file.h"

#include "satrap/core/file.h"

namespace satrap::data {

std::vector<DataFile> without_folder(std::vector<DataFile> files, const std::string& folder) {
  for (DataFile& file : files) file.path = satrap::without_folder(file.path, folder);
  return files;
}

}  // namespace satrap::data
