#include "src/net/bytes.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/net/fixture.h"

namespace satrap::net {
namespace {

TEST(NetBytes, NumbersAndTextsComeBackInTheirOrder) {
  ByteWriter writer;
  writer.put(std::uint8_t{7}).put_text("store").put(std::int64_t{-5}).put_text("");
  writer.put(std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(writer.bytes().size(), 1U + (4 + 5) + 8 + 4 + 4);
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get<std::uint8_t>(), 7);
  EXPECT_EQ(reader.get_text(), "store");
  EXPECT_EQ(reader.get<std::int64_t>(), -5);
  EXPECT_EQ(reader.get_text(), "");
  EXPECT_EQ(reader.get<std::uint32_t>(), 0xFFFFFFFFU);
  EXPECT_EQ(reader.rest(), "");
}

TEST(NetBytes, TextsMayHoldAnyByte) {
  const std::string text("\0\n\xFF", 3);
  EXPECT_EQ(ByteReader(ByteWriter().put_text(text).bytes()).get_text(), text);
}

TEST(NetBytes, WhatFollowsIsLeft) {
  const std::string bytes = ByteWriter().put(std::uint16_t{1}).bytes() + "payload";
  ByteReader reader(bytes);
  reader.get<std::uint16_t>();
  EXPECT_EQ(reader.rest(), "payload");
}

TEST(NetBytes, AMessageThatEndsTooEarlyIsAProtocolError) {
  const auto get_number = [](std::string_view bytes) { ByteReader(bytes).get<std::uint64_t>(); };
  EXPECT_EQ(failure_of([&] { get_number(""); }), NetFailure::kProtocol);
  EXPECT_EQ(failure_of([&] { get_number("1234567"); }), NetFailure::kProtocol);
  EXPECT_EQ(failure_of([&] { get_number("12345678"); }), std::nullopt);
  EXPECT_NE(message_of([&] { get_number("123"); }).find("8 bytes needed, 3 left"),
            std::string::npos);
}

TEST(NetBytes, ATextIsNoLongerThanTheMessage) {
  std::string bytes = ByteWriter().put_text("store").bytes();
  const auto get_text = [](std::string_view from) { ByteReader(from).get_text(); };
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(failure_of([&] { get_text(bytes.substr(0, size)); }), NetFailure::kProtocol) << size;
  }
  bytes[3] = '\x7F';  // a length of 2 GB
  EXPECT_EQ(failure_of([&] { get_text(bytes); }), NetFailure::kProtocol);
}

}  // namespace
}  // namespace satrap::net
