#include "messages/class_order.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "messages/text_encoding.h"

namespace arbalest::jobs {

namespace {

bool is_whole_number(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// The name; of whole numbers the digits without leading zeros.
std::string_view key_of(std::string_view name) {
  if (!is_whole_number(name)) return name;
  return name.substr(std::min(name.find_first_not_of('0'), name.size() - 1));
}

std::vector<std::string_view> keys_of(std::span<const std::string> names) {
  std::vector<std::string_view> keys;
  keys.reserve(names.size());
  for (const std::string& name : names) keys.push_back(key_of(name));
  return keys;
}

}  // namespace

bool is_other_order(std::span<const std::string> names, std::span<const std::string> others) {
  std::vector<std::string_view> ours = keys_of(names);
  std::vector<std::string_view> theirs = keys_of(others);
  if (ours == theirs) return false;
  std::ranges::sort(ours);
  std::ranges::sort(theirs);
  return ours == theirs;
}

std::ptrdiff_t first_difference(std::span<const std::string> names, std::span<const std::string> others) {
  const auto same = [](const std::string& a, const std::string& b) { return key_of(a) == key_of(b); };
  const auto at = std::ranges::mismatch(names, others, same).in1;
  return at == names.end() ? -1 : at - names.begin();
}

bool are_uncounted_numbers(std::span<const std::string> names) {
  if (names.empty() || !std::ranges::all_of(names, is_whole_number)) return false;
  const auto value = [](const std::string& name) { return std::pair(key_of(name).size(), key_of(name)); };
  return !std::ranges::is_sorted(names, {}, value);
}

std::string numbers_warning(std::span<const std::string> names, std::span<const std::string> called, bool are_folders,
                            const std::string& origin) {
  if (!are_uncounted_numbers(names)) return "";
  std::size_t at = 1;  // the first class before which a larger number stands
  while (!are_uncounted_numbers(names.subspan(at - 1, 2))) ++at;
  const std::string other =
      called[at] == names[at] ? "" : fmt::format(" and is called '{}'", shortened(printable(called[at])));
  const std::string remedy =
      "; folders are sorted as text, as torchvision's ImageFolder sorts them: for numerical order pad their "
      "names with zeros ('02' before '10')";
  return fmt::format("{}: the names are whole numbers, but not in numerical order: class {} is '{}'{}{}", origin, at,
                     names[at], other, are_folders ? remedy : "");
}

std::string exchange_warning(std::span<const std::string> names, std::span<const std::string> called,
                             const std::string& origin) {
  const std::vector<std::string_view> keys = keys_of(names);
  for (std::size_t c = 0; c < std::min(names.size(), called.size()); ++c) {
    const std::string_view key = key_of(called[c]);
    const auto other = std::ranges::find(keys, key);
    if (key == keys[c] || other == keys.end()) continue;
    return fmt::format(
        "class_names call class {} '{}', which is the name of class {} in {}; if that is not meant, write them in the "
        "order of the classes' numbers: {}",
        c, printable(called[c]), other - keys.begin(), origin, in_order(names));
  }
  return "";
}

std::string in_order(std::span<const std::string> names) {
  constexpr std::size_t kMostNames = 15;
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), kMostNames))) {
    shown.push_back(shortened(printable(name)));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kMostNames ? fmt::format(" and {} more", names.size() - kMostNames) : "");
}

}  // namespace arbalest::jobs
