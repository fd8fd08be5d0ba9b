#include "tests/support/ptx/sass.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "tests/support/ptx/program.h"

namespace ptx {
namespace {

/// The opcode without its modifiers: BRA of BRA.DIV.
std::string base_of(const std::string& opcode) { return opcode.substr(0, opcode.find('.')); }

bool is_anchor(const std::string& opcode) {
  static const std::set<std::string> kAnchors = {"LDG",   "STG",   "LDS",   "STS", "SHFL", "VOTE",
                                                 "VOTEU", "REDUX", "MATCH", "BAR", "BRA",  "EXIT"};
  return kAnchors.contains(base_of(opcode));
}

bool ends_block(const std::string& opcode) {
  static const std::set<std::string> kJumps = {"BRA", "BRX", "EXIT", "RET", "CALL", "JMP"};
  return kJumps.contains(base_of(opcode));
}

}  // namespace

void Sass::read(std::istream& text, std::map<std::string, Sass>& kernels) {
  std::string line, name;
  std::vector<std::string> lines;
  const auto finish = [&] {
    if (!name.empty()) kernels.try_emplace(canonical_name(name), parse(lines));
    lines.clear();
  };
  const std::string section = "//--------------------- .text.";
  while (std::getline(text, line)) {
    if (line.starts_with("//----")) {
      finish();
      name = line.starts_with(section)
                 ? line.substr(section.size(), line.find(' ', section.size()) - section.size())
                 : "";
    } else {
      lines.push_back(line);
    }
  }
  finish();
}

Sass Sass::parse(const std::vector<std::string>& lines) {
  static const std::regex kLine(R"(.*\.nv_debug_ptx_txt", line (\d+).*)");
  static const std::regex kInstruction(R"(\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+ )?\s*([A-Z][\w.]*)(.*))");
  static const std::regex kTarget(R"(.*`\((\S+)\).*)");
  std::set<std::string> divergent;  // labels that BRA.DIV jumps to
  std::smatch match;
  for (const std::string& line : lines) {
    if (line.find("BRA.DIV") == std::string::npos) continue;
    if (std::regex_match(line, match, kTarget)) divergent.insert(match[1]);
  }
  Sass sass;
  sass.blocks_.emplace_back();
  bool is_out_of_line = false;
  int number = 0;
  const auto begin_block = [&](bool is_cold) {
    sass.blocks_.push_back({.instructions = {}, .is_cold = is_cold || is_out_of_line});
  };
  for (const std::string& line : lines) {
    if (std::regex_match(line, match, kLine)) {
      number = std::stoi(match[1]);
    } else if ((line.starts_with(".L_") || line.starts_with("$")) && line.ends_with(":")) {
      // Divergent collectives follow the kernel's own code, subroutines follow them.
      is_out_of_line |=
          line.starts_with("$") || divergent.contains(line.substr(0, line.size() - 1));
      begin_block(false);
    } else if (std::regex_match(line, match, kInstruction)) {
      const std::string opcode = match[2];
      if (opcode == "NOP") continue;
      sass.blocks_.back().instructions.push_back({number, opcode});
      const bool is_call = base_of(opcode) == "CALL";
      if (is_call) sass.blocks_.back().is_cold = true;
      if (ends_block(opcode)) begin_block(is_call);
    }
  }
  return sass;
}

double Sass::issued(const std::map<int, std::int64_t>& executions) const {
  const auto executions_of = [&](int line) {
    const auto found = executions.find(line);
    return found == executions.end() ? 0.0 : static_cast<double>(found->second);
  };
  using Anchor = std::pair<int, std::string>;
  std::map<Anchor, int> copies;
  for (const Block& block : blocks_) {
    if (block.is_cold) continue;
    std::set<Anchor> here;
    for (const auto& [line, opcode] : block.instructions) {
      if (is_anchor(opcode)) here.insert({line, base_of(opcode)});
    }
    for (const Anchor& anchor : here) ++copies[anchor];
  }
  double sum = 0.0;
  for (const Block& block : blocks_) {
    if (block.is_cold || block.instructions.empty()) continue;
    double most = -1.0;
    std::vector<double> all;
    for (const auto& [line, opcode] : block.instructions) {
      all.push_back(executions_of(line));
      if (is_anchor(opcode)) most = std::max(most, all.back() / copies[{line, base_of(opcode)}]);
    }
    if (most < 0) {
      const auto middle = all.begin() + std::ssize(all) / 2;
      std::ranges::nth_element(all, middle);
      most = *middle;
    }
    sum += most * static_cast<double>(block.instructions.size());
  }
  return sum;
}

std::map<std::string, Sass> read_sass(const std::filesystem::path& folder) {
  std::map<std::string, Sass> kernels;
  for (const auto& path : files_of(folder, ".sass")) {
    std::ifstream text(path);
    Sass::read(text, kernels);
  }
  return kernels;
}

}  // namespace ptx
