#include <string>

#include <curl/curl.h>

#include "src/data/hdfs/name_node.h"
#include "src/data/store.h"
#include "src/data/store_cache.h"

namespace satrap::data {
namespace {

class CurlLibrary : public StoreLibrary {
 public:
  CurlLibrary() { curl_global_init(CURL_GLOBAL_ALL); }
  ~CurlLibrary() override {
    name_nodes_.clear();
    curl_global_cleanup();
  }
  CurlLibrary(const CurlLibrary&) = delete;
  CurlLibrary& operator=(const CurlLibrary&) = delete;

  std::string describe() const override {
    return std::string("WebHDFS by libcurl ") + curl_version_info(CURLVERSION_NOW)->version;
  }

  Store& connect(const std::string& address, double stall_s) override {
    return name_nodes_.find_or_open(address, stall_s, open_name_node);
  }

 private:
  StoreCache name_nodes_;
};

}  // namespace
}  // namespace satrap::data

extern "C" satrap::data::StoreLibrary* satrap_hdfs();
satrap::data::StoreLibrary* satrap_hdfs() {
  static satrap::data::CurlLibrary library;
  return &library;
}
