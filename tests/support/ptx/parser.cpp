#include "tests/support/ptx/parser.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <utility>

#include "tests/support/ptx/evaluate.h"
#include "tests/support/simt/executor.h"

namespace ptx {
namespace {

const std::map<std::string, Opcode> kOpcodes = {
    {"abs", Opcode::kAbs},   {"add", Opcode::kAdd},
    {"and", Opcode::kAnd},   {"bar", Opcode::kBarWarp},
    {"bfi", Opcode::kBfi},   {"bfind", Opcode::kBfind},
    {"bra", Opcode::kBra},   {"brev", Opcode::kBrev},
    {"cvta", Opcode::kMov},  {"copysign", Opcode::kCopysign},
    {"cvt", Opcode::kCvt},   {"div", Opcode::kDiv},
    {"fma", Opcode::kFma},   {"ld", Opcode::kLd},
    {"mad", Opcode::kMad},   {"max", Opcode::kMax},
    {"min", Opcode::kMin},   {"mov", Opcode::kMov},
    {"mul", Opcode::kMul},   {"neg", Opcode::kNeg},
    {"not", Opcode::kNot},   {"or", Opcode::kOr},
    {"popc", Opcode::kPopc}, {"prmt", Opcode::kPrmt},
    {"rcp", Opcode::kRcp},   {"redux", Opcode::kRedux},
    {"ret", Opcode::kRet},   {"selp", Opcode::kSelp},
    {"setp", Opcode::kSetp}, {"shfl", Opcode::kShfl},
    {"shl", Opcode::kShl},   {"shr", Opcode::kShr},
    {"sqrt", Opcode::kSqrt}, {"st", Opcode::kSt},
    {"sub", Opcode::kSub},   {"vote", Opcode::kVote},
    {"xor", Opcode::kXor},
};

const std::map<std::string, Type> kTypes = {
    {"pred", Type::kPred}, {"b8", Type::kB8},   {"b16", Type::kB16}, {"b32", Type::kB32},
    {"b64", Type::kB64},   {"u8", Type::kU8},   {"u16", Type::kU16}, {"u32", Type::kU32},
    {"u64", Type::kU64},   {"s8", Type::kS8},   {"s16", Type::kS16}, {"s32", Type::kS32},
    {"s64", Type::kS64},   {"f16", Type::kF16}, {"f32", Type::kF32}, {"bf16", Type::kBf16},
};

const std::map<std::string, Comparison> kComparisons = {
    {"eq", Comparison::kEq}, {"ne", Comparison::kNe}, {"lt", Comparison::kLt},
    {"le", Comparison::kLe}, {"gt", Comparison::kGt}, {"ge", Comparison::kGe},
};

const std::map<std::string, Mode> kModes = {
    {"lo", Mode::kLo},         {"hi", Mode::kHi},   {"wide", Mode::kWide},
    {"rn", Mode::kRn},         {"rzi", Mode::kRzi}, {"shiftamt", Mode::kShiftAmt},
    {"ballot", Mode::kBallot}, {"any", Mode::kAny}, {"min", Mode::kMin},
    {"max", Mode::kMax},       {"idx", Mode::kIdx}, {"up", Mode::kUp},
};

const std::map<std::string, Space> kSpaces = {{"global", Space::kGlobal},
                                              {"shared", Space::kShared},
                                              {"param", Space::kParameter}};

const std::map<std::string, Operand::Kind> kSpecialRegisters = {
    {"%tid.x", Operand::Kind::kThread},
    {"%ctaid.x", Operand::Kind::kBlock},
    {"%ntid.x", Operand::Kind::kBlockSize},
    {"%nctaid.x", Operand::Kind::kGridSize},
};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string trimmed(const std::string& text) {
  const auto begin = std::ranges::find_if_not(text, is_space);
  auto end = text.end();
  while (end > begin && is_space(end[-1])) --end;
  return {begin, end};
}

/// Splits at any of `separators` outside of brackets and braces; spaces are dropped.
std::vector<std::string> split(const std::string& text, const std::string& separators) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += static_cast<int>(c == '{' || c == '[') - static_cast<int>(c == '}' || c == ']');
    if (depth == 0 && separators.find(c) != std::string::npos) {
      parts.emplace_back();
    } else if (!is_space(c)) {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

class Parser {
 public:
  Parser(std::istream& text, const std::string& file, Module& module)
      : text_(text), file_(file), module_(module) {}

  void run() {
    for (std::string line; std::getline(text_, line);) {
      ++line_;
      read_line(trimmed(line.substr(0, line.find("//"))));
    }
    if (kernel_) fail("the file ends within " + kernel_->name);
  }

 private:
  enum class Part { kOutside, kParameters, kBody };

  [[noreturn]] void fail(const std::string& what) const {
    throw simt::Fault(file_ + ":" + std::to_string(line_) + ": " + what);
  }

  template <class T>
  const T& find(const std::map<std::string, T>& known, const std::string& name) const {
    const auto found = known.find(name);
    if (found == known.end()) fail(name + " is not modelled");
    return found->second;
  }

  void read_line(std::string line) {
    if (line.empty()) return;
    if (line.starts_with(".shared")) return place_shared_array(line);
    if (const auto at = line.find(".entry "); at != std::string::npos) {
      return begin_kernel(line, at);
    }
    if (part_ == Part::kParameters) return read_parameter(line);
    if (part_ == Part::kOutside) return;
    if (line.starts_with("{")) {  // a scope, as of inline assembly
      ++scopes_;
      line = trimmed(line.substr(1));
    }
    const bool closes = line.ends_with("}");
    if (closes) line = trimmed(line.substr(0, line.size() - 1));
    if (!line.empty()) read_statement(line);
    if (closes && scopes_-- == 0) end_kernel();
  }

  void read_statement(const std::string& line) {
    if (line.ends_with(":")) {
      labels_[line.substr(0, line.size() - 1)] = static_cast<int>(kernel_->code.size());
    } else if (!line.starts_with(".")) {
      read_instruction(line);
    } else if (!line.starts_with(".reg") && !line.starts_with(".pragma") &&
               !line.starts_with(".loc ") && !line.starts_with(".loc\t")) {
      fail(line + " is not modelled");
    }
  }

  /// `.shared .align 4 .b8 name[4096];`
  void place_shared_array(const std::string& line) {
    std::istringstream words(line);
    std::string shared, align, type, name;
    std::uint64_t alignment = 0;
    words >> shared >> align >> alignment >> type >> name;
    const std::size_t bracket = name.find('[');
    if (align != ".align" || type != ".b8" || bracket == std::string::npos) {
      fail(line + " is not modelled");
    }
    constexpr std::uint64_t kMost = 16;  // the widest access
    const std::uint64_t end =
        module_.shared_arrays.empty() ? 0 : module_.shared_arrays.back().end();
    std::uint64_t at = (end / kMost + 1) * kMost;  // a gap behind the one before
    if (alignment < kMost) at += alignment;
    shared_[name.substr(0, bracket)] = at;
    module_.shared_arrays.push_back({at, std::stoull(name.substr(bracket + 1))});
  }

  void begin_kernel(const std::string& line, std::size_t at) {
    std::string name = line.substr(at + 7);
    name = name.substr(0, name.find('('));
    kernel_.emplace();
    kernel_->name = name;
    kernel_->file = file_;
    registers_.clear();
    labels_.clear();
    parameters_.clear();
    branches_.clear();
    part_ = Part::kParameters;
  }

  /// `.param .u64 name,` or `.param .align 8 .b8 name[24]`
  void read_parameter(const std::string& line) {
    if (line == "{") {
      part_ = Part::kBody;
      return;
    }
    if (!line.starts_with(".param")) return;  // ")", ".maxntid 128, 1, 1"
    std::string name = line.substr(line.rfind(' ') + 1);
    if (name.ends_with(",")) name.pop_back();
    int bytes = 0;
    if (const auto bracket = name.find('['); bracket != std::string::npos) {
      bytes = std::stoi(name.substr(bracket + 1));
      name.resize(bracket);
    } else {
      std::istringstream words(line);
      std::string param, type;
      words >> param >> type;
      bytes = bytes_of(find(kTypes, type.substr(1)));
    }
    parameters_[name] = static_cast<int>(kernel_->parameter_bytes.size());
    kernel_->parameter_bytes.push_back(bytes);
  }

  void end_kernel() {
    for (const auto& [index, label] : branches_) {
      kernel_->code[index].target = find(labels_, label);
    }
    kernel_->num_registers = static_cast<int>(registers_.size());
    if (kernel_->code.empty() || !always_leaves(kernel_->code.back())) {
      fail(kernel_->name + " does not end in ret or bra");
    }
    const std::string key = canonical_name(kernel_->name);
    const auto [known, is_new] = module_.kernels.try_emplace(key, *kernel_);
    const auto text = [](const Line& line) { return line.text; };
    if (!is_new && !std::ranges::equal(known->second.lines, kernel_->lines, {}, text, text)) {
      fail(kernel_->name + " is not the one of " + known->second.file);
    }
    kernel_.reset();
    part_ = Part::kOutside;
    scopes_ = 0;
  }

  static bool always_leaves(const Instruction& i) {
    return i.guard < 0 && (i.opcode == Opcode::kRet || i.opcode == Opcode::kBra);
  }

  void read_instruction(std::string line) {
    Instruction i;
    kernel_->lines.push_back({line_, line});
    if (line.find(';') != line.size() - 1) fail("not one instruction: " + line);
    line.pop_back();
    if (line.starts_with("@")) line = read_guard(line, i);
    const std::size_t space = line.find_first_of(" \t");
    const std::string operands = space == std::string::npos ? "" : trimmed(line.substr(space));
    read_opcode(line.substr(0, space), i);
    if (i.opcode == Opcode::kBra) {
      branches_.emplace_back(kernel_->code.size(), operands);
    } else if (i.opcode != Opcode::kRet) {
      read_operands(operands, i);
    }
    kernel_->code.push_back(i);
  }

  std::string read_guard(const std::string& line, Instruction& i) {
    i.guard_is_negated = line.at(1) == '!';
    const std::size_t begin = i.guard_is_negated ? 2 : 1;
    const std::size_t end = line.find_first_of(" \t");
    i.guard = operand(line.substr(begin, end - begin)).index;
    return trimmed(line.substr(end));
  }

  void read_opcode(const std::string& name, Instruction& i) {
    const std::vector<std::string> parts = split(name, ".");
    i.opcode = find(kOpcodes, parts[0]);
    if (i.opcode == Opcode::kBarWarp && name != "bar.warp.sync") fail(name + " is not modelled");
    // Part of the opcode, or without a meaning for the result.
    static const std::vector<std::string> kSilent = {"sync", "warp", "uni", "to", "v2", "v4"};
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const std::string& part = parts[p];
      if (kTypes.contains(part)) {
        (i.type == Type::kNone ? i.type : i.source_type) = kTypes.at(part);
      } else if (i.opcode == Opcode::kSetp && kComparisons.contains(part)) {
        i.comparison = kComparisons.at(part);
      } else if (kSpaces.contains(part)) {
        i.space = kSpaces.at(part);
      } else if (std::ranges::find(kSilent, part) == kSilent.end()) {
        i.mode = find(kModes, part);
      }
    }
    if (!is_defined(i)) fail(name + " is not modelled");
  }

  void read_operands(const std::string& text, Instruction& i) {
    // Only shfl's second destination, behind a bar, is modelled.
    std::vector<std::string> parts = split(text, i.opcode == Opcode::kShfl ? ",|" : ",");
    if (parts.size() < 2 && i.opcode != Opcode::kBarWarp) fail("an operand is missing: " + text);
    std::size_t first = 0;
    if (i.opcode == Opcode::kShfl) {  // d|p, a, b, c, mask
      i.destinations.push_back(operand(parts.at(0)));
      i.destinations.push_back(operand(parts.at(1)));
      first = 2;
    } else if (i.opcode != Opcode::kSt && i.opcode != Opcode::kBarWarp) {
      for (const Operand& destination : group(parts.at(0))) i.destinations.push_back(destination);
      first = 1;
    }
    for (; first < parts.size(); ++first) {
      for (const Operand& source : group(parts[first])) i.sources.push_back(source);
    }
    if (!has_its_operands(i)) fail("operands that are not modelled: " + text);
  }

  std::vector<Operand> group(const std::string& text) {
    if (!text.starts_with("{")) return {operand(text)};
    std::vector<Operand> operands;
    for (const std::string& part : split(text.substr(1, text.size() - 2), ",")) {
      operands.push_back(operand(part));
    }
    return operands;
  }

  std::uint64_t number(const std::string& text) const {
    std::size_t used = 0;
    const auto value = text.starts_with("-")
                           ? static_cast<std::uint64_t>(std::stoll(text, &used, 0))
                           : std::stoull(text, &used, 0);
    if (used != text.size()) fail("no number: " + text);
    return value;
  }

  Operand operand(std::string text) {
    Operand o;
    if (text.starts_with("[")) {
      text = text.substr(1, text.size() - 2);
      if (const auto plus = text.find('+'); plus != std::string::npos) {
        o.value = number(text.substr(plus + 1));
        text.resize(plus);
      }
    }
    if (text.empty()) fail("an operand is missing");
    if (const auto special = kSpecialRegisters.find(text); special != kSpecialRegisters.end()) {
      o.kind = special->second;
    } else if (text.starts_with("%")) {
      if (text.find_first_of(".|") != std::string::npos || text.starts_with("%lane") ||
          text.starts_with("%warp") || text.starts_with("%clock")) {
        fail("the register " + text + " is not modelled");
      }
      o.kind = Operand::Kind::kRegister;
      o.index = registers_.try_emplace(text, static_cast<int>(registers_.size())).first->second;
    } else if (text.starts_with("0f")) {
      o.value += std::stoull(text.substr(2), nullptr, 16);
    } else if (text.starts_with("-") || is_digit(text[0])) {
      o.value += number(text);
    } else if (const auto shared = shared_.find(text); shared != shared_.end()) {
      o.value += shared->second;
    } else {
      o.kind = Operand::Kind::kParameter;
      o.index = find(parameters_, text);
    }
    return o;
  }

  std::istream& text_;
  const std::string& file_;
  Module& module_;
  int line_ = 0;
  Part part_ = Part::kOutside;
  int scopes_ = 0;  // open within the kernel
  std::optional<Kernel> kernel_;
  std::map<std::string, int> registers_, labels_, parameters_;
  std::map<std::string, std::uint64_t> shared_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
};

}  // namespace

void parse(std::istream& text, const std::string& file, Module& module) {
  Parser(text, file, module).run();
}

std::string canonical_name(const std::string& mangled) {
  // nvcc: <length>_GLOBAL__N__<hash>_<length>_<file>_<hash>; GCC: 12_GLOBAL__N_1. The length may
  // follow a digit of the name before.
  std::string result;
  for (std::size_t at = 0; at < mangled.size();) {
    std::size_t end = at;
    while (end < mangled.size() && is_digit(mangled[end])) ++end;
    if (end == at) {
      result += mangled[at++];
      continue;
    }
    std::size_t next = end;
    std::string kept = mangled.substr(at, end - at);
    if (mangled.compare(end, 10, "_GLOBAL__N") == 0) {
      for (std::size_t first = at; first < end; ++first) {
        const std::size_t length = std::stoul(mangled.substr(first, end - first));
        if ((length == 12 || length > 20) && length < 100 && end + length <= mangled.size()) {
          kept = mangled.substr(at, first - at) + "@";
          next = end + length;
          break;
        }
      }
    }
    result += kept;
    at = next;
  }
  return result;
}

}  // namespace ptx
