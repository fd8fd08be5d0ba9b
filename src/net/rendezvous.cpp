#include "satrap/net/rendezvous.h"

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "satrap/net/file_rendezvous.h"
#include "satrap/net/tcp_rendezvous.h"

namespace satrap::net {

std::shared_ptr<Rendezvous> open_rendezvous(const std::string& url,
                                            const std::string& token,
                                            Deadline deadline) {
  const std::string file = "file://";
  if (url.starts_with(file) && url.size() > file.size()) {
    return std::make_shared<FileRendezvous>(url.substr(file.size()));
  }
  const std::string tcp = "tcp://";
  const std::size_t colon = url.rfind(':');
  if (url.starts_with(tcp) && colon > tcp.size()) {
    std::string host = url.substr(tcp.size(), colon - tcp.size());
    if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const auto port = parse_number<std::uint16_t>(url.substr(colon + 1));
    if (port && *port > 0) return std::make_shared<TcpRendezvous>(host, *port, token, deadline);
  }
  throw Error(ErrorCode::kInvalidConfig,
              concat("store '", url, "': expected file:///directory or tcp://host:port"));
}

}  // namespace satrap::net
