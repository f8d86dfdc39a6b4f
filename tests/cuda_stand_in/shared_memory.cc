#include "tests/cuda_stand_in/shared_memory.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>
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

// Whether a symbol is a variable inside a function of the kernels' namespace, or a variable shared_... in a test's own
// kernel.
bool is_shared(std::string_view symbol) {
  const bool is_of_test = symbol.starts_with("_ZZN8arbalest5tests12_GLOBAL__N_1");
  return symbol.starts_with("_ZZN8arbalest6engine4cuda") ||
         (is_of_test && symbol.find("shared_") != std::string_view::npos);
}

std::vector<Bytes> find_variables() {
  const std::vector<char> program = read_program();
  Elf64_Ehdr header{};
  if (program.size() < sizeof(header)) throw std::runtime_error("the stand-in cannot read /proc/self/exe");
  std::memcpy(&header, program.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), program.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  std::vector<Bytes> variables;
  bool has_symbols = false;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    has_symbols = true;
    const char* names = program.data() + sections[section.sh_link].sh_offset;
    for (std::size_t place = 0; place < section.sh_size; place += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      std::memcpy(&symbol, program.data() + section.sh_offset + place, sizeof(symbol));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= sections.size()) continue;
      if (sections[symbol.st_shndx].sh_type != SHT_NOBITS || !is_shared(names + symbol.st_name)) continue;
      variables.emplace_back(reinterpret_cast<std::byte*>(load_offset() + symbol.st_value), symbol.st_size);
    }
  }
  if (!has_symbols) throw std::runtime_error("the stand-in finds no __shared__ variables in a stripped program");
  return variables;
}

const std::vector<Bytes>& variables() {
  static const std::vector<Bytes> all = find_variables();
  return all;
}

// AddressSanitizer guards the space between variables, and a variable's symbol may include a part of it.
#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize("address"))) void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) const_cast<volatile std::byte*>(to)[i] = from[i];
}
__attribute__((no_sanitize("address"))) bool are_equal(const std::byte* a, const std::byte* b, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (const_cast<const volatile std::byte*>(a)[i] != b[i]) return false;
  }
  return true;
}
#else
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
bool are_equal(const std::byte* a, const std::byte* b, std::size_t bytes) { return std::memcmp(a, b, bytes) == 0; }
#endif

// Poison, as much as the largest variable has bytes.
const std::byte* poison() {
  static const std::vector<std::byte> bytes = [] {
    std::size_t largest = 0;
    for (const Bytes& variable : variables()) largest = std::max(largest, variable.size());
    return std::vector(largest, static_cast<std::byte>(kPoison));
  }();
  return bytes.data();
}

// Poisons the variables that are not. Calls before(index, variable) for each of them first. A kernel uses few of a
// program's variables, and looking is cheaper than writing.
template <typename Before>
void poison_others(const Before& before) {
  for (std::size_t i = 0; i < variables().size(); ++i) {
    const Bytes variable = variables()[i];
    if (are_equal(variable.data(), poison(), variable.size())) continue;
    before(i, variable);
    copy_bytes(variable.data(), poison(), variable.size());
  }
}

}  // namespace

void poison_shared_memory() {
  poison_others([](std::size_t, const Bytes&) {});
}

SharedContents take_shared_memory() {
  SharedContents contents;
  poison_others([&](std::size_t i, const Bytes& variable) {
    contents.variables.push_back(i);
    contents.bytes.resize(contents.bytes.size() + variable.size());
    copy_bytes(&contents.bytes.back() + 1 - variable.size(), variable.data(), variable.size());
  });
  return contents;
}

void put_shared_memory(const SharedContents& contents) {
  const std::byte* place = contents.bytes.data();
  for (const std::size_t i : contents.variables) {
    copy_bytes(variables()[i].data(), place, variables()[i].size());
    place += variables()[i].size();
  }
}

bool is_shared_variable(const std::byte* address, std::size_t bytes) {
  return std::ranges::any_of(variables(), [&](const Bytes& variable) {
    return address >= variable.data() && address + bytes <= variable.data() + variable.size();
  });
}

}  // namespace arbalest::tests::cuda_stand_in
