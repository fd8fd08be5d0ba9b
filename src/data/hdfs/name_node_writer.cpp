#include "src/data/hdfs/name_node_writer.h"

#include <cstddef>

#include "src/data/hdfs/name_node.h"

namespace satrap::data {
namespace {

std::string temporary_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, begin) + ".tmp-" + path.substr(begin);
}

void require_done(const HttpAnswer& answer) {
  if (answer.problem.empty() && (answer.status == 200 || answer.status == 201)) return;
  throw_failure(answer);
}

}  // namespace

std::string NameNodeWriter::url_of(const std::string& path, const std::string& operation) const {
  return base_ + url_encoded(path, /*keeps_slashes=*/true) + "?op=" + operation + identity();
}

void NameNodeWriter::write(const std::string& path, const RandomFile& content) {
  const std::string temporary = temporary_name(path);
  const HttpAnswer sent = http_.send("PUT", url_of(temporary, "CREATE&overwrite=true"));
  if (sent.redirect.empty()) throw_failure(sent);  // a name node names a data node
  require_done(http_.send("PUT", sent.redirect, &content));
  // Replaces what has the name, in one step of the name node.
  const std::string name = url_encoded("/" + path, /*keeps_slashes=*/true);
  require_done(
      http_.send("PUT", url_of(temporary, "RENAME&renameoptions=OVERWRITE&destination=" + name)));
}

void NameNodeWriter::remove(const std::string& path) {
  require_done(http_.send("DELETE", url_of(path, "DELETE&recursive=true")));
}

}  // namespace satrap::data
