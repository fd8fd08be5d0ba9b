#include "satrap/core/progress_line.h"

#include "src/core/terminal.h"

namespace satrap {

ProgressLine::ProgressLine() = default;
ProgressLine::~ProgressLine() { Terminal::standard_error().set_last_line(""); }

bool ProgressLine::is_visible() const { return Terminal::standard_error().is_terminal(); }

void ProgressLine::show(const std::string& text) { Terminal::standard_error().set_last_line(text); }

}  // namespace satrap
