#include "src/loader/loader_wire.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace satrap::loader {
namespace {

constexpr std::size_t kErrorHeaderBytes = 2;  // kind and code

/// The numbers of a request, in their order.
template <class Pass, class Visit>
void visit_numbers(Pass& request, const Visit& visit) {
  auto& pass = request.pass;
  visit(request.first_eval_row);
  visit(request.num_ranks);
  visit(pass.epoch);
  visit(pass.first_row);
  visit(pass.max_rows);
  visit(pass.split.rank);
  visit(pass.split.world_size);
  visit(pass.split.rows_per_turn);
  visit(pass.split.stream.number);
  visit(pass.split.stream.count);
  visit(pass.split.stream.rows_per_turn);
}

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::kInvalidData, concat("a request of rows: ", what));
}

data::TopicPosition read_place(const std::string& text) {
  data::TopicPosition place = data::TopicPosition::from_json(text, "a request of rows");
  require(place.row >= 0, "a negative row of a topic");
  for (const data::TopicPosition::Partition& at : place.partitions) {
    require(at.first >= 0 && at.next >= 0 && at.skip >= 0 && at.end >= data::TopicPosition::kNoEnd,
            "a negative offset");
  }
  return place;
}

}  // namespace

std::string entry_key(std::int64_t number) { return concat("loaders/", number); }
std::string server_name(std::int64_t number) { return concat("loader/", number); }

std::string to_bytes(const PassRequest& request) {
  std::string bytes;
  const auto put = [&](std::int64_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  put(kProtocol);
  visit_numbers(request, put);
  const std::string place = request.place ? request.place->to_json() : "";
  put(std::ssize(place));
  return bytes + place + dump_config(request.config);
}

PassRequest read_pass_request(std::span<const std::byte> bytes) {
  PassRequest request;
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto take = [&](std::int64_t& number) {
    require(rest.size() >= sizeof(number), "ends early");
    std::memcpy(&number, rest.data(), sizeof(number));
    rest.remove_prefix(sizeof(number));
  };
  std::int64_t protocol = 0;
  take(protocol);
  if (protocol != kProtocol) {
    throw Error(ErrorCode::kInvalidConfig, concat("the rank speaks version ", protocol,
                                                  " of the protocol, this loader ", kProtocol));
  }
  visit_numbers(request, take);
  const data::RowPass& pass = request.pass;
  const data::RowSplit& split = pass.split;
  const data::RowStream& stream = split.stream;
  require(pass.epoch >= 0 && pass.first_row >= 0 && pass.max_rows >= 0, "negative rows");
  require(split.world_size >= 1 && split.rank >= 0 && split.rank < split.world_size &&
              split.rows_per_turn >= 1,
          "no such rank");
  require(request.num_ranks >= 1, "no rank");
  constexpr std::int64_t kMostRows = std::int64_t{1} << 60;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // products of two are numbers of rows
  require(pass.first_row <= kMostRows && pass.max_rows <= kMostRows, "too many rows");
  require(split.world_size <= kMost && split.rows_per_turn <= kMost, "too many ranks or rows");
  require(stream.count >= 1 && stream.number >= 0 && stream.number < stream.count &&
              stream.rows_per_turn >= 1,
          "no such stream");
  require(stream.count <= kMost && stream.rows_per_turn <= kMost, "too many streams or rows");
  std::int64_t place_bytes = 0;
  take(place_bytes);
  require(place_bytes >= 0 && place_bytes <= std::ssize(rest), "ends early");
  const std::string place(rest.substr(0, static_cast<std::size_t>(place_bytes)));
  rest.remove_prefix(place.size());
  load_config_text(request.config, std::string(rest), "the request of a rank");
  if (!place.empty()) request.place = read_place(place);
  return request;
}

std::vector<std::byte> error_bytes(ErrorCode code, const std::string& message) {
  std::vector<std::byte> bytes(kErrorHeaderBytes + message.size());
  bytes[0] = static_cast<std::byte>(AnswerKind::kError);
  bytes[1] = static_cast<std::byte>(code);
  std::ranges::copy(std::as_bytes(std::span(message)), bytes.begin() + kErrorHeaderBytes);
  return bytes;
}

void throw_error(std::span<const std::byte> bytes, const std::string& loader) {
  if (bytes.size() < kErrorHeaderBytes ||
      bytes[1] > static_cast<std::byte>(ErrorCode::kUnavailable)) {
    throw Error(ErrorCode::kCorrupt, loader + ": an error without a code");
  }
  const auto text = bytes.subspan(kErrorHeaderBytes);
  throw Error(static_cast<ErrorCode>(bytes[1]),
              concat(loader, ": ",
                     std::string_view(reinterpret_cast<const char*>(text.data()), text.size())));
}

}  // namespace satrap::loader
