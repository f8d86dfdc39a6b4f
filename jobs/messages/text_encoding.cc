#include "jobs/messages/text_encoding.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace arbalest::jobs {

bool is_utf8(std::string_view text) {
  try {
    nlohmann::json(text).dump();  // throws unless the text is UTF-8
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string printable(std::string_view text) {
  const bool keep_all = is_utf8(text);
  std::string result(text);
  std::ranges::replace_if(
      result,
      [&](char c) { return (is_control(c) && c != '\t') || (!keep_all && static_cast<unsigned char>(c) > 0x7f); }, '?');
  return result;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kLength = 100;
  return text.size() <= kLength ? std::string(text) : std::string(text.substr(0, kLength)) + "...";
}

}  // namespace arbalest::jobs
