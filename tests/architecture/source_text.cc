#include "tests/architecture/source_text.h"

#include <cctype>

namespace arbalest::tests {

namespace {

// Finds the comment or literal that begins at `at`. Its end is one past the last character, or `at` if there is none.
struct Token {
  std::size_t end;
  bool comment;
};

std::size_t end_of(std::string_view text, std::string_view mark, std::size_t from) {
  const std::size_t found = text.find(mark, from);
  return found == std::string_view::npos ? text.size() : found + mark.size();
}

std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return at + 1;  // not a literal: an apostrophe in a preprocessor line
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

Token token_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) {
    const std::size_t end = text.find('\n', at);
    return {end == std::string_view::npos ? text.size() : end, true};
  }
  if (rest.starts_with("/*")) return {end_of(text, "*/", at + 2), true};
  const bool after_word = at > 0 && is_word(text[at - 1]);
  if (rest.starts_with("R\"") && !after_word) {
    const std::size_t open = text.find('(', at);
    if (open == std::string_view::npos) return {at, false};
    return {end_of(text, ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"", open), false};
  }
  if (rest[0] == '"') return {end_of_quoted(text, at), false};
  if (rest[0] == '\'' && !after_word) return {end_of_quoted(text, at), false};  // 1'000 is a number
  return {at, false};
}

std::string blanked(std::string_view text, bool keep_strings) {
  std::string result(text);
  for (std::size_t at = 0; at < text.size();) {
    const Token token = token_at(text, at);
    if (token.comment || !keep_strings) {
      for (std::size_t i = at; i < token.end; ++i) {
        if (result[i] != '\n') result[i] = ' ';
      }
    }
    at = token.end == at ? at + 1 : token.end;
  }
  return result;
}

}  // namespace

std::string without_comments(std::string_view text) { return blanked(text, true); }
std::string without_comments_and_strings(std::string_view text) { return blanked(text, false); }

}  // namespace arbalest::tests
