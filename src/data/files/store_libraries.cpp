#include "src/data/files/store_libraries.h"

#include "satrap/core/loaded_library.h"
#include "satrap/data/store_support.h"

namespace satrap::data {
namespace {

StoreLibrary& opened(const LoadedLibrary& library) {
  return *reinterpret_cast<StoreLibrary* (*)()>(open_library(library))();
}

StoreLibrary& s3_library() {
  static StoreLibrary& library =
      opened({"libsatrap_s3.so", "satrap_s3", "files in S3",
              "satrap's packages have it in lib/ beside bin/; for a build of your own run "
              "./launch/setup.sh s3, configure and build again"});
  return library;
}

StoreLibrary& hdfs_library() {
  static StoreLibrary& library =
      opened({"libsatrap_hdfs.so", "satrap_hdfs", "files in HDFS",
              "satrap's packages have it in lib/ beside bin/; for a build of your own run "
              "./launch/setup.sh hdfs, configure and build again"});
  return library;
}

}  // namespace

StoreLibrary& store_library(const std::string& scheme) {
  return scheme == "s3" ? s3_library() : hdfs_library();
}

std::string describe_s3() { return s3_library().describe(); }
std::string describe_hdfs() { return hdfs_library().describe(); }

}  // namespace satrap::data
