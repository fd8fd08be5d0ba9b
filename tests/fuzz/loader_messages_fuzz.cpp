// The messages between a rank and a loader, from a peer that knows the token and lies. The first
// byte chooses: a request of rows, a delivery of them, or an error. A request that is accepted says
// the same once it has been sent again; the columns of a delivery have as many rows as it says.
#include <span>
#include <string>

#include "satrap/data/row_deliveries.h"
#include "src/loader/loader_wire.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace satrap;
using fuzz::fail;

void take_request(std::span<const std::byte> bytes) {
  loader::PassRequest request;
  if (fuzz::is_refused([&] { request = loader::read_pass_request(bytes); })) return;
  const std::string sent = loader::to_bytes(request);
  const loader::PassRequest again = loader::read_pass_request(std::as_bytes(std::span(sent)));
  if (loader::to_bytes(again) != sent) fail("a request has changed");
}

void take_delivery(std::span<const std::byte> bytes) {
  static const data::Schema schema = [] {
    data::DataConfig config;
    config.schema.numeric.emplace_back().name = "n";
    config.schema.features.emplace_back().name = "c";
    return data::resolve_schema(config);
  }();
  data::RowDelivery delivery;
  if (fuzz::is_refused([&] { data::read(bytes, schema, delivery); })) return;
  const data::RowBlock& rows = delivery.rows;
  if (rows.num_rows == 0) return;
  const auto num_rows = static_cast<std::size_t>(rows.num_rows);
  if (rows.labels.size() != num_rows || rows.numeric.at(0).size() != num_rows ||
      rows.bags.at(0).offsets.size() != num_rows + 1 ||
      rows.bags.at(0).ids.size() != static_cast<std::size_t>(rows.bags.at(0).offsets.back())) {
    fail("columns of different lengths");
  }
  rows.row_number(rows.num_rows - 1);  // is defined
}

void take_error(std::span<const std::byte> bytes) {
  try {
    loader::throw_error(bytes, "loader/0");
  } catch (const Error&) {  // of any code: the loader says which
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 3) {
    case 0:
      take_request(bytes);
      break;
    case 1:
      take_delivery(bytes);
      break;
    default:
      take_error(bytes);
  }
  return 0;
}
