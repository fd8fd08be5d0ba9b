#include "tests/support/simt/counts.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <pthread.h>

namespace simt {

void Counts::add_wait() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  ++waits_by_thread[name];
}

std::string Counts::json() const {
  std::ostringstream by_thread;
  std::int64_t waits = 0;
  for (const auto& [name, count] : waits_by_thread) {
    by_thread << (waits == 0 ? "" : ", ") << '"' << name << "\": " << count;
    waits += count;
  }
  std::ostringstream out;
  out << "{\"launches\": " << launches << ", \"copies\": " << copies
      << ", \"copied_bytes\": " << copied_bytes << ", \"fills\": " << fills
      << ", \"waits\": " << waits << ", \"waits_by_thread\": {" << by_thread.str()
      << "}, \"allocations\": " << allocations << ", \"graph_launches\": " << graph_launches
      << ", \"collectives\": " << collectives << ", \"collective_bytes\": " << collective_bytes
      << "}\n";
  return out.str();
}

Counts& counts() {
  static Counts& instance = *[] {
    auto* const made = new Counts;  // threads may outlive main()
    if (std::getenv("SIMT_COUNTS") != nullptr) {
      std::atexit([] { std::ofstream(std::getenv("SIMT_COUNTS")) << counts().json(); });
    }
    return made;
  }();
  return instance;
}

}  // namespace simt
