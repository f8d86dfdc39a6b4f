#include "tests/cuda_stand_in/shared_memory.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace arbalest::tests::cuda_stand_in {

namespace {

using Bytes = std::span<std::byte>;

// These bytes are a NaN, or an index that is out of every range.
constexpr int kPoison = 0xFF;

std::vector<char> read_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary | std::ios::ate);
  std::vector<char> bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// Returns the address at which the program was loaded, minus the address for which it was linked.
std::uintptr_t load_offset() {
  std::uintptr_t offset = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;  // the program is the first
      },
      &offset);
  return offset;
}

// Calls found(name, bytes) for each variable of the program that starts as zeros.
template <typename Found>
void find_variables(const Found& found) {
  const std::vector<char> program = read_program();
  Elf64_Ehdr header{};
  if (program.size() < sizeof(header)) throw std::runtime_error("the stand-in cannot read /proc/self/exe");
  std::memcpy(&header, program.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), program.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* names = program.data() + sections[section.sh_link].sh_offset;
    for (std::size_t place = 0; place < section.sh_size; place += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      std::memcpy(&symbol, program.data() + section.sh_offset + place, sizeof(symbol));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections.size()) continue;
      if (sections[symbol.st_shndx].sh_type != SHT_NOBITS) continue;
      found(std::string_view(names + symbol.st_name),
            Bytes(reinterpret_cast<std::byte*>(load_offset() + symbol.st_value), symbol.st_size));
    }
  }
}

// A function that declares __shared__ variables. They hold poison while it is not in use, from its first use on.
struct Function {
  std::string prefix;  // of its variables' names: _ZZ, its own name, E
  std::vector<Bytes> variables = {};
  bool is_in_use = false;
  bool was_in_use = false;
};

// What stands between the prefix and the end of the name of a variable that `__shared__` declares.
constexpr std::string_view kSite = "20shared_site_is_known";

struct Program {
  std::vector<Function> functions;
  std::map<const void*, std::size_t> of_sites;  // index in `functions`, by the address of the site's variable
};

Program find_functions() {
  Program program;
  std::map<std::string, std::size_t, std::less<>> of_prefixes;
  find_variables([&](std::string_view name, Bytes bytes) {
    const std::size_t end = name.find(kSite);
    if (end == std::string_view::npos) return;
    const std::string prefix(name.substr(0, end));
    const auto [function, is_new] = of_prefixes.try_emplace(prefix, program.functions.size());
    if (is_new) program.functions.push_back({prefix});
    program.of_sites[bytes.data()] = function->second;
  });
  find_variables([&](std::string_view name, Bytes bytes) {
    if (!name.starts_with("_ZZ") || name.find(kSite) != std::string_view::npos) return;
    for (std::size_t end = name.find('E'); end != std::string_view::npos; end = name.find('E', end + 1)) {
      const auto function = of_prefixes.find(name.substr(0, end + 1));
      if (function != of_prefixes.end()) program.functions[function->second].variables.push_back(bytes);
    }
  });
  return program;
}

Program& program() {
  static Program found = find_functions();
  return found;
}

std::vector<std::size_t> in_use;  // indices of functions
std::vector<bool*> known_sites;

// AddressSanitizer guards the space between variables, and a variable's symbol may include a part of it.
#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize("address"))) void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) const_cast<volatile std::byte*>(to)[i] = from[i];
}
__attribute__((no_sanitize("address"))) void fill_bytes(std::byte* to, int value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) const_cast<volatile std::byte*>(to)[i] = static_cast<std::byte>(value);
}
#else
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void fill_bytes(std::byte* to, int value, std::size_t bytes) { std::memset(to, value, bytes); }
#endif

template <typename Do>
void for_each_variable(std::size_t function, const Do& run) {
  for (const Bytes variable : program().functions[function].variables) run(variable);
}

void poison(std::size_t function) {
  for_each_variable(function, [](Bytes variable) { fill_bytes(variable.data(), kPoison, variable.size()); });
}

void use(std::size_t index) {
  Function& function = program().functions[index];
  if (function.is_in_use) return;
  if (!function.was_in_use) poison(index);
  function.is_in_use = function.was_in_use = true;
  in_use.push_back(index);
}

}  // namespace

void use_shared_memory(bool& site_is_known) {
  const auto function = program().of_sites.find(&site_is_known);
  if (function == program().of_sites.end()) {
    throw std::runtime_error("the stand-in finds no __shared__ variables in a stripped program");
  }
  use(function->second);
  site_is_known = true;
  known_sites.push_back(&site_is_known);
}

void poison_shared_memory() {
  for (const std::size_t function : in_use) {
    poison(function);
    program().functions[function].is_in_use = false;
  }
  in_use.clear();
  for (bool* site_is_known : known_sites) *site_is_known = false;
  known_sites.clear();
}

SharedContents take_shared_memory() {
  SharedContents contents;
  contents.functions = in_use;
  for (const std::size_t function : in_use) {
    for_each_variable(function, [&](Bytes variable) {
      contents.bytes.resize(contents.bytes.size() + variable.size());
      copy_bytes(contents.bytes.data() + contents.bytes.size() - variable.size(), variable.data(), variable.size());
    });
  }
  poison_shared_memory();
  return contents;
}

void put_shared_memory(const SharedContents& contents) {
  const std::byte* place = contents.bytes.data();
  for (const std::size_t function : contents.functions) {
    use(function);
    for_each_variable(function, [&](Bytes variable) {
      copy_bytes(variable.data(), place, variable.size());
      place += variable.size();
    });
  }
}

bool is_shared_variable(const std::byte* address, std::size_t bytes) {
  return std::ranges::any_of(in_use, [&](std::size_t function) {
    return std::ranges::any_of(program().functions[function].variables, [&](Bytes variable) {
      return address >= variable.data() && address + bytes <= variable.data() + variable.size();
    });
  });
}

}  // namespace arbalest::tests::cuda_stand_in
