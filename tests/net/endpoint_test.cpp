#include "satrap/net/endpoint.h"

#include <csignal>

#include <gtest/gtest.h>

#include "satrap/core/error.h"

namespace satrap::net {
namespace {

TEST(Endpoint, InterfaceMayBeNamed) {
  EndpointOptions options;
  options.interface = "lo";
  EXPECT_EQ(Endpoint(options).address(), "127.0.0.1");
}

// Gloo's write to a dead peer would end the process.
TEST(Endpoint, SigpipeIsIgnoredUnlessTheProgramHandlesIt) {
  const auto action_after = [](void (*before)(int)) {
    signal(SIGPIPE, before);
    const Endpoint endpoint{EndpointOptions{}};
    return signal(SIGPIPE, SIG_IGN);
  };
  EXPECT_EQ(action_after(SIG_DFL), SIG_IGN);
  const auto handler = [](int) {};
  EXPECT_EQ(action_after(handler), +handler);
}

TEST(Endpoint, GlooIsThatOfLibgloo) {
  EXPECT_TRUE(describe_gloo().starts_with("/")) << describe_gloo();
}

TEST(Endpoint, UnknownInterfaceIsRefused) {
  EndpointOptions options;
  options.interface = "no-such-interface.invalid";
  EXPECT_THROW(Endpoint{options}, Error);
}

}  // namespace
}  // namespace satrap::net
