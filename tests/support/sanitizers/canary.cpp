// Commits the fault named on its command line; the sanitizer of the build must report it.
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>

namespace {

volatile int g_sink = 0;

int race() {
  int value = 0;
  std::thread other([&value] { value += 1; });
  value += 1;
  other.join();
  return value;
}

int use_after_free() {
  auto owner = std::make_unique<int>(1);
  const int* volatile gone = owner.get();
  owner.reset();
  return *gone;
}

int leak() {
  int* volatile lost = new int[16];
  lost[0] = 1;
  lost = nullptr;
  return 0;
}

int overflow() {
  volatile int largest = std::numeric_limits<int>::max();
  return largest + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc == 2 ? argv[1] : "";
  if (fault == "race") {
    g_sink = race();
  } else if (fault == "use_after_free") {
    g_sink = use_after_free();
  } else if (fault == "leak") {
    g_sink = leak();
  } else if (fault == "overflow") {
    g_sink = overflow();
  } else {
    std::fprintf(stderr, "usage: sanitizer_canary race|use_after_free|leak|overflow\n");
    return 2;
  }
  return 0;
}
