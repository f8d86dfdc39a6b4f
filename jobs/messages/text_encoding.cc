#include "jobs/messages/text_encoding.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include <fmt/format.h>
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

namespace {

// Bytes at the beginning of UTF-8 `text` that are a control character beyond ASCII: U+0080 to U+009F, the separators
// U+2028 and U+2029, and the marks of direction U+202A to U+202E and U+2066 to U+2069. 0: none.
std::size_t wide_control(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() >= 2 && byte(0) == 0xc2 && byte(1) < 0xa0) return 2;
  if (text.size() < 3 || byte(0) != 0xe2) return 0;
  const bool is_separator_or_embedding = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;
  const bool is_isolate = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return is_separator_or_embedding || is_isolate ? 3 : 0;
}

std::string without_controls(std::string_view text, bool keeps_lines) {
  const bool keeps_all = is_utf8(text);
  std::string result;
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t wide = keeps_all ? wide_control(text) : 0;
    const bool is_kept = c == '\t' || (c == '\n' && keeps_lines);
    const bool is_unknown = !keeps_all && static_cast<unsigned char>(c) > 0x7f;
    result += wide > 0 || is_unknown || (is_control(c) && !is_kept) ? '?' : c;
    text.remove_prefix(std::max<std::size_t>(wide, 1));
  }
  return result;
}

// Replaces each character of `text` that has an escape.
std::string escaped(std::string_view text, const std::map<char, std::string_view>& escapes) {
  std::string result;
  for (const char c : text) {
    const auto found = escapes.find(c);
    found == escapes.end() ? result += c : result += found->second;
  }
  return result;
}

// Bytes that are not UTF-8 become U+FFFD.
std::string csv_field(std::string_view text) {
  const std::string utf8 =
      nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  const std::string plain = without_controls(utf8, /*keeps_lines=*/true);
  if (plain.find_first_of(",\"\n") == std::string::npos) return plain;
  return fmt::format("\"{}\"", escaped(plain, {{'"', "\"\""}}));
}

}  // namespace

std::string safe_text(std::string_view text, TextFor target) {
  if (target == TextFor::kCsv) return csv_field(text);
  const std::string plain = without_controls(text, /*keeps_lines=*/target != TextFor::kLine);
  switch (target) {
    case TextFor::kLine:
    case TextFor::kTerminal:
    case TextFor::kCsv:
      break;
    case TextFor::kHtml:
      return escaped(plain, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
    case TextFor::kMarkdown:
      return escaped(plain, {{'|', "\\|"},
                             {'*', "\\*"},
                             {'`', "\\`"},
                             {'[', "\\["},
                             {'\\', "\\\\"},
                             {'&', "&amp;"},
                             {'<', "&lt;"},
                             {'\n', " "}});
    case TextFor::kPrometheus:
      return escaped(plain, {{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}});
  }
  return plain;
}

std::string printable(std::string_view text) { return safe_text(text, TextFor::kLine); }

std::string shortened(std::string_view text) {
  constexpr std::size_t kLength = 100;
  return text.size() <= kLength ? std::string(text) : std::string(text.substr(0, kLength)) + "...";
}

}  // namespace arbalest::jobs
