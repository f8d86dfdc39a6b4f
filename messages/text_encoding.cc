#include "messages/text_encoding.h"

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

// Replaces bytes that are not UTF-8 by U+FFFD.
std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  return nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Returns how many bytes at the beginning of UTF-8 `text` are a control character beyond ASCII: U+0080 to U+009F, the
// separators U+2028 and U+2029, and the marks of direction U+202A to U+202E and U+2066 to U+2069. 0: none.
std::size_t wide_control(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() >= 2 && byte(0) == 0xc2 && byte(1) < 0xa0) return 2;
  if (text.size() < 3 || byte(0) != 0xe2) return 0;
  const bool is_separator_or_embedding = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;
  const bool is_isolate = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return is_separator_or_embedding || is_isolate ? 3 : 0;
}

// `text`: UTF-8.
std::string without_controls(std::string_view text, TextFor target) {
  constexpr std::string_view kReplacement = "\ufffd";
  std::string result;
  while (!text.empty()) {
    const char c = text.front();
    std::size_t bytes = wide_control(text);
    if (target != TextFor::kCsv && text.starts_with(kReplacement)) bytes = kReplacement.size();
    const bool is_kept = c == '\t' || (c == '\n' && target != TextFor::kLine);
    result += bytes > 0 || (is_control(c) && !is_kept) ? '?' : c;
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
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

std::string csv_field(const std::string& plain) {
  if (plain.find_first_of(",\"\n") == std::string::npos) return plain;
  return fmt::format("\"{}\"", escaped(plain, {{'"', "\"\""}}));
}

}  // namespace

std::string safe_text(std::string_view text, TextFor target) {
  const std::string plain = without_controls(as_utf8(text), target);
  switch (target) {
    case TextFor::kLine:
    case TextFor::kTerminal: break;
    case TextFor::kCsv: return csv_field(plain);
    case TextFor::kHtml: return escaped(plain, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
    case TextFor::kMarkdown:
      return escaped(plain, {{'|', "\\|"},
                             {'*', "\\*"},
                             {'`', "\\`"},
                             {'[', "\\["},
                             {'\\', "\\\\"},
                             {'&', "&amp;"},
                             {'<', "&lt;"},
                             {'\n', " "}});
    case TextFor::kPrometheus: return escaped(plain, {{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}});
  }
  return plain;
}

std::string printable(std::string_view text) { return safe_text(text, TextFor::kLine); }

std::string shortened(std::string_view text) {
  constexpr std::size_t kLength = 100;
  return text.size() <= kLength ? std::string(text) : std::string(text.substr(0, kLength)) + "...";
}

}  // namespace arbalest::jobs
