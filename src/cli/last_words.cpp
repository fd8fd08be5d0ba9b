#include "src/cli/last_words.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include <pthread.h>
#include <unistd.h>

namespace satrap::cli {
namespace {

void say(const char* text) { static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text))); }

[[noreturn]] void end_for_want_of(const char* what) {
  char thread[16] = "?";
  pthread_getname_np(pthread_self(), thread, sizeof(thread));
  say("error: ");
  say(what);
  say(" in thread '");
  say(thread);
  say("'\n");
  _exit(1);
}

}  // namespace

void end_without_memory() { end_for_want_of("out of memory"); }

void end_unreported() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (const std::system_error& error) {
    end_for_want_of(error.what());
  } catch (const std::exception& error) {
    say("error: ");
    say(error.what());
    say("\n");
  } catch (...) {
    say("error: an unknown exception\n");
  }
  std::abort();
}

}  // namespace satrap::cli
