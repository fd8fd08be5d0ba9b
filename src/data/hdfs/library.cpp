#include <string>

#include "src/data/files/object_store.h"
#include "src/data/files/store_cache.h"
#include "src/data/hdfs/name_node.h"
#include "src/data/http/http_client.h"

namespace satrap::data {
namespace {

class CurlLibrary : public StoreLibrary {
 public:
  std::string describe() const override { return "WebHDFS by " + curl_version_text(); }

  ObjectStore& connect(const std::string& address, double stall_s) override {
    return name_nodes_.find_or_open(address, stall_s, open_name_node);
  }

 private:
  const CurlInUse curl_;
  StoreCache name_nodes_;
};

}  // namespace
}  // namespace satrap::data

extern "C" satrap::data::StoreLibrary* satrap_hdfs();
satrap::data::StoreLibrary* satrap_hdfs() {
  static satrap::data::CurlLibrary library;
  return &library;
}
