#include "src/data/rows/row_block_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "satrap/core/error.h"
#include "src/data/rows/byte_fields.h"

namespace satrap::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kBlockVersion = 0x32425253;           // "SRB2"
constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 31;  // so that sums of lengths fit 63 bits

struct BlockHeader {
  std::uint32_t version = kBlockVersion;
  std::uint32_t num_rows = 0;
  std::int64_t first_row = 0;
  std::int64_t rows_read = 0;
  std::uint32_t num_labels = 0;
  std::uint32_t num_numeric = 0;
  std::uint32_t num_bags = 0;
  std::uint32_t num_kept = 0;
};

/// Calls `action` with a number of the unsigned type of that many bytes. False: there is none.
template <class Action>
bool with_width(std::uint8_t width, const Action& action) {
  switch (width) {
    case 1:
      action(std::uint8_t{});
      return true;
    case 2:
      action(std::uint16_t{});
      return true;
    case 4:
      action(std::uint32_t{});
      return true;
    case 8:
      action(std::uint64_t{});
      return true;
    default:
      return false;
  }
}

/// Writes `value(i)` for each i below `count`, as differences from the least.
template <class Value>
void put_integers(std::size_t count,
                  std::uint8_t least_width,
                  const Value& value,
                  ByteWriter& out) {
  std::uint64_t least = count == 0 ? 0 : UINT64_MAX, most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t x = value(i);
    least = std::min(least, x);
    most = std::max(most, x);
  }
  const std::uint64_t range = most - least;
  const std::uint8_t needed = range == 0            ? 0
                              : range <= UINT8_MAX  ? 1
                              : range <= UINT16_MAX ? 2
                              : range <= UINT32_MAX ? 4
                                                    : 8;
  const std::uint8_t width = std::max(needed, least_width);
  out.put(width);
  out.put(least);
  with_width(width, [&](auto type) {
    using T = decltype(type);
    std::byte* to = out.extend(count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i, to += sizeof(T)) {
      const auto difference = static_cast<T>(value(i) - least);
      std::memcpy(to, &difference, sizeof(T));
    }
  });
}

/// Calls `put(i, value)` for each i below `count`.
template <class Put>
void get_integers(std::size_t count, std::uint8_t least_width, const Put& put, ByteReader& in) {
  const auto width = in.get<std::uint8_t>();
  const auto least = in.get<std::uint64_t>();
  if (width == 0 && least_width == 0) {
    for (std::size_t i = 0; i < count; ++i) put(i, least);
    return;
  }
  const bool is_known = with_width(width, [&](auto type) {
    using T = decltype(type);
    const std::byte* from = in.take(count, sizeof(T));
    for (std::size_t i = 0; i < count; ++i, from += sizeof(T)) {
      T difference;
      std::memcpy(&difference, from, sizeof(T));
      put(i, least + difference);
    }
  });
  if (!is_known) in.fail(concat("integers of ", static_cast<int>(width), " bytes"));
}

/// Lengths of consecutive pieces, from where each ends.
void put_lengths(const std::int64_t* ends, std::size_t count, ByteWriter& out) {
  const auto length = [&](std::size_t i) {
    return static_cast<std::uint64_t>(ends[i] - (i == 0 ? 0 : ends[i - 1]));
  };
  put_integers(count, 0, length, out);
}

/// The end of each piece; all pieces together are no longer than the bytes that follow.
void get_lengths(ByteReader& in, std::int64_t* ends, std::size_t count) {
  std::int64_t end = 0;
  std::uint64_t any = 0;
  const auto put = [&](std::size_t i, std::uint64_t length) {
    any |= length;
    ends[i] = end += static_cast<std::int64_t>(length & UINT32_MAX);
  };
  get_integers(count, 0, put, in);
  if (any > UINT32_MAX) in.fail("a length is too large");
  in.require(static_cast<std::size_t>(end), 1);
}

/// As floats where that loses nothing: most numbers are counts.
void put_numbers(std::span<const double> numbers, ByteWriter& out) {
  const bool are_floats = std::ranges::all_of(numbers, [](double x) {
    return std::isnan(x) || static_cast<double>(static_cast<float>(x)) == x;
  });
  out.put(static_cast<std::uint8_t>(are_floats ? sizeof(float) : sizeof(double)));
  if (!are_floats) {
    out.put(numbers.data(), numbers.size());
    return;
  }
  std::byte* to = out.extend(numbers.size() * sizeof(float));
  for (std::size_t i = 0; i < numbers.size(); ++i, to += sizeof(float)) {
    const auto number = static_cast<float>(numbers[i]);
    std::memcpy(to, &number, sizeof(number));
  }
}

void get_numbers(ByteReader& in, std::size_t count, std::vector<double>& numbers) {
  const auto width = in.get<std::uint8_t>();
  if (width == sizeof(double)) {
    in.get_all(numbers, count);
    return;
  }
  if (width != sizeof(float)) in.fail(concat("numbers of ", static_cast<int>(width), " bytes"));
  const std::byte* from = in.take(count, sizeof(float));
  numbers.resize(count);
  for (std::size_t i = 0; i < count; ++i, from += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, from, sizeof(number));
    numbers[i] = static_cast<double>(number);
  }
}

void check_columns(const char* what,
                   std::uint32_t found,
                   std::size_t expected,
                   const ByteReader& in) {
  if (found != expected)
    in.fail(concat("it has ", found, " columns of ", what, ", not ", expected));
}

}  // namespace

void append_block(const RowBlock& block, std::vector<std::byte>& bytes) {
  const auto num_rows = static_cast<std::size_t>(block.num_rows);
  ByteWriter out(bytes);
  out.put(BlockHeader{.num_rows = static_cast<std::uint32_t>(num_rows),
                      .first_row = block.first_row,
                      .rows_read = block.rows_read,
                      .num_labels = static_cast<std::uint32_t>(block.num_labels),
                      .num_numeric = static_cast<std::uint32_t>(block.numeric.size()),
                      .num_bags = static_cast<std::uint32_t>(block.bags.size()),
                      .num_kept = static_cast<std::uint32_t>(block.kept.size())});
  out.put(static_cast<std::uint8_t>(block.row_numbers.empty() ? 0 : 1));
  if (!block.row_numbers.empty()) {  // by how much each is above the place of its row
    const auto above = [&](std::size_t r) {
      return static_cast<std::uint64_t>(block.row_numbers[r]) - r;
    };
    put_integers(num_rows, 0, above, out);
  }
  out.put(block.labels.data(), num_rows * static_cast<std::size_t>(block.num_labels));
  for (const std::vector<double>& column : block.numeric) {
    put_numbers(std::span(column).first(num_rows), out);
  }
  for (const RowBlock::Bags& bags : block.bags) {
    put_lengths(bags.offsets.data() + 1, num_rows, out);
    put_integers(bags.ids.size(), 1, [&](std::size_t i) { return bags.ids[i]; }, out);
    out.put(static_cast<std::uint8_t>(bags.weights.empty() ? 0 : 1));
    out.put(bags.weights.data(), bags.weights.size());
  }
  for (const Texts& texts : block.kept) {
    put_lengths(texts.ends.data(), num_rows, out);
    out.put(texts.bytes.data(), texts.bytes.size());
  }
}

void read_block(std::span<const std::byte> bytes,
                std::span<const NamedLabelConfig> labels,
                RowBlock& block) {
  ByteReader in(bytes, "block of rows");
  if (bytes.size() > kMaxBlockBytes) in.fail(concat(bytes.size(), " bytes are too many"));
  const auto header = in.get<BlockHeader>();
  if (header.version != kBlockVersion) {
    in.fail(concat("version ", header.version, ", not ", kBlockVersion));
  }
  check_columns("labels", header.num_labels, static_cast<std::size_t>(block.num_labels), in);
  check_columns("numbers", header.num_numeric, block.numeric.size(), in);
  check_columns("ids", header.num_bags, block.bags.size(), in);
  check_columns("texts", header.num_kept, block.kept.size(), in);
  const std::size_t num_rows = header.num_rows;
  in.require(num_rows, sizeof(float));  // of one label at least
  block.num_rows = static_cast<std::int64_t>(num_rows);
  block.first_row = header.first_row;
  block.rows_read = header.rows_read;
  block.row_numbers.clear();
  if (in.get<std::uint8_t>() != 0) {
    block.row_numbers.resize(num_rows);
    const auto put = [&](std::size_t r, std::uint64_t number) {
      block.row_numbers[r] = static_cast<std::int64_t>(number + r);
    };
    get_integers(num_rows, 0, put, in);
  }
  in.get_all(block.labels, num_rows * header.num_labels);
  for (std::size_t i = 0; i < block.labels.size(); ++i) {
    const float label = block.labels[i];
    const bool may_be =
        labels[i % labels.size()].source.allows(label) || (std::isnan(label) && labels.size() > 1);
    if (!may_be) in.fail(concat("a label is ", label));
  }
  for (std::vector<double>& column : block.numeric) get_numbers(in, num_rows, column);
  for (RowBlock::Bags& bags : block.bags) {
    bags.offsets.resize(num_rows + 1);
    bags.offsets[0] = 0;
    get_lengths(in, bags.offsets.data() + 1, num_rows);
    const auto num_ids = static_cast<std::size_t>(bags.offsets.back());
    bags.ids.resize(num_ids);
    std::uint64_t* const ids = bags.ids.data();
    get_integers(num_ids, 1, [ids](std::size_t i, std::uint64_t id) { ids[i] = id; }, in);
    in.get_all(bags.weights, in.get<std::uint8_t>() != 0 ? num_ids : 0);
  }
  for (Texts& texts : block.kept) {
    texts.ends.resize(num_rows);
    get_lengths(in, texts.ends.data(), num_rows);
    const auto size = num_rows == 0 ? 0 : static_cast<std::size_t>(texts.ends.back());
    in.require(size, 1);
    texts.bytes.resize(size);
    in.get(texts.bytes.data(), size);
  }
  in.require_end();
}

}  // namespace satrap::data
