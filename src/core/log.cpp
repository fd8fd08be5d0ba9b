#include "satrap/core/log.h"

#include <memory>
#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "satrap/core/error.h"
#include "satrap/core/text.h"
#include "src/core/terminal.h"

namespace satrap {
namespace {

// Writes lines to the terminal, with coloured levels if it is one.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TerminalSink(Terminal& terminal) : terminal_(terminal) {
    set_pattern_("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    std::string line(buffer.data(), buffer.size());
    const std::string_view color = color_of(message.level);
    if (terminal_.is_terminal() && !color.empty()) {
      line.insert(message.color_range_end, "\x1b[0m");
      line.insert(message.color_range_start, color);
    }
    terminal_.print(line);
  }
  void flush_() override {}

 private:
  static std::string_view color_of(spdlog::level::level_enum level) {
    if (level == spdlog::level::err) return "\x1b[31;1m";
    if (level == spdlog::level::warn) return "\x1b[33;1m";
    return "";
  }

  Terminal& terminal_;
};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// spdlog's default logger, redirected from stdout to stderr at its first use.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "satrap", std::make_shared<TerminalSink>(Terminal::standard_error()));
    spdlog::set_default_logger(made);
    return made;
  }();
  return *logger;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

LogLevel parse_log_level(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  throw Error(
      ErrorCode::kInvalidConfig,
      concat("log level must be one of: debug, info, warning, error, off; got \"", name, "\""));
}

bool is_logged(LogLevel level) { return logger().should_log(to_spdlog(level)); }

void log_message(LogLevel level, std::string_view message) {
  logger().log(to_spdlog(level), printable(message));
}

}  // namespace satrap
