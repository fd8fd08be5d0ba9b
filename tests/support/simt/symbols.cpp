#include "tests/support/simt/symbols.h"

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <unordered_map>
#include <vector>

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

namespace simt {
namespace {

/// Leaves out parameters, the type of the result and namespaces, but not within <>.
std::string short_name(const std::string& name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::size_t begin = 0, end = name.size();
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, kUnnamed.size(), kUnnamed) == 0) i += kUnnamed.size();
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth != 0) continue;
    if (name[i] == ' ' || name[i] == ':') begin = i + 1;
    if (name[i] == '(') {
      end = i;
      break;
    }
  }
  return name.substr(begin, end - begin);
}

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  return name == nullptr ? symbol : short_name(name.get());
}

std::unordered_map<const void*, std::string> symbols_by_address() {
  std::unordered_map<const void*, std::string> symbols;
  for (const auto& [name, address] : functions_of_this_program()) symbols[address] = name;
  return symbols;
}

}  // namespace

std::map<std::string, const void*> functions_of_this_program() {
  std::vector<char> image(std::filesystem::file_size("/proc/self/exe"));
  std::ifstream file("/proc/self/exe", std::ios::binary);
  file.read(image.data(), static_cast<std::streamsize>(image.size()));
  const auto read = [&]<class T>(std::uint64_t offset, T value) {
    std::memcpy(&value, image.data() + offset, sizeof(value));
    return value;
  };
  const auto header = read(0, Elf64_Ehdr{});
  const auto section = [&](std::uint64_t index) {
    return read(header.e_shoff + index * header.e_shentsize, Elf64_Shdr{});
  };
  std::uint64_t base = 0;  // of a position-independent program; the program itself comes first
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uint64_t*>(result) = info->dlpi_addr;
        return 1;
      },
      &base);
  std::map<std::string, const void*> functions;
  for (std::uint64_t s = 0; s < header.e_shnum; ++s) {
    const Elf64_Shdr symbols = section(s);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const char* names = image.data() + section(symbols.sh_link).sh_offset;
    for (std::uint64_t at = 0; at < symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read(symbols.sh_offset + at, Elf64_Sym{});
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) continue;
      functions[names + symbol.st_name] = std::bit_cast<const void*>(base + symbol.st_value);
    }
  }
  return functions;
}

std::string name_of_kernel(const void* kernel) {
  static const auto& symbols = *new auto(symbols_by_address());  // threads may outlive main()
  if (const auto found = symbols.find(kernel); found != symbols.end()) {
    return demangled(found->second.c_str());
  }
  std::ostringstream out;
  out << "kernel " << kernel;
  return out.str();
}

}  // namespace simt
