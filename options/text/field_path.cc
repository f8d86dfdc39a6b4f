#include "options/text/field_path.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Returns false if `text` is neither "name" nor "name[index]".
bool parse_part(std::string_view text, FieldPathPart& part) {
  const std::size_t bracket = text.find('[');
  part.name = text.substr(0, bracket);
  if (!is_name(part.name)) return false;
  if (bracket == std::string_view::npos) return true;
  const std::string_view digits = text.substr(bracket + 1);
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), part.index);
  return code == std::errc() && part.index >= 0 && std::string_view(end, digits.data() + digits.size()) == "]";
}

}  // namespace

std::string to_string(const FieldPathPart& part) {
  return part.index < 0 ? part.name : fmt::format("{}[{}]", part.name, part.index);
}

std::vector<FieldPathPart> parse_field_path(std::string_view path) {
  std::vector<FieldPathPart> parts;
  for (;;) {
    const std::size_t dot = path.find('.');
    if (!parse_part(path.substr(0, dot), parts.emplace_back())) return {};
    if (dot == std::string_view::npos) return parts;
    path = path.substr(dot + 1);
  }
}

std::string parent_path(std::string_view path) {
  const std::size_t end = path.find_last_of(".[");
  return end == std::string_view::npos ? "" : std::string(path.substr(0, end));
}

}  // namespace arbalest::jobs
