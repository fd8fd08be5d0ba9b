#pragma once

#include <string_view>

namespace satrap::app {

// The files of this folder, as the build has read them: the parts of scripts that know no command.
extern const std::string_view kBashScript;  // bash.sh
extern const std::string_view kZshScript;   // zsh.zsh
extern const std::string_view kFishScript;  // fish.fish

}  // namespace satrap::app
