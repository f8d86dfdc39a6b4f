#include "options/text/source_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "messages/text_encoding.h"

namespace arbalest::jobs {

namespace {

constexpr int kTabWidth = 8;  // as in protobuf's tokenizer
constexpr std::size_t kExcerptWidth = 160;

bool continues_utf8(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

SourceText::SourceText(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
  line_starts_.push_back(0);
  int column = 0;  // protobuf's column
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\t') {
      const int end = column + kTabWidth - column % kTabWidth;
      tabs_.push_back({i, column, end});
      column = end;
    } else {
      ++column;
    }
    if (text_[i] == '\n') {
      line_starts_.push_back(i + 1);
      column = 0;
    }
  }
}

std::string_view SourceText::line(int number) const {
  const auto index = static_cast<std::size_t>(number - 1);
  if (index >= line_starts_.size()) return {};
  const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] - 1 : text_.size();
  return std::string_view(text_).substr(line_starts_[index], end - line_starts_[index]);
}

std::size_t SourceText::offset(Position position) const {
  const auto index = std::min(static_cast<std::size_t>(position.line - 1), line_starts_.size() - 1);
  return std::min(line_starts_[index] + static_cast<std::size_t>(position.column - 1), text_.size());
}

Position SourceText::from_protobuf(int line_number, int column) const {
  const auto index = static_cast<std::size_t>(line_number);
  const std::size_t start = index < line_starts_.size() ? line_starts_[index] : text_.size();
  const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] : text_.size();
  // Finds the last tab of the line that begins before the column.
  const auto first = std::ranges::lower_bound(tabs_, start, {}, &Tab::offset);
  const auto behind =
      std::ranges::lower_bound(first, std::ranges::lower_bound(tabs_, end, {}, &Tab::offset), column, {}, &Tab::begin);
  if (behind == first) return {line_number + 1, column + 1};
  const Tab& tab = *(behind - 1);
  return {line_number + 1, static_cast<int>(tab.offset - start) + 2 + std::max(column - tab.end, 0)};
}

Position SourceText::start_of(std::string_view word, Position position) const {
  std::string_view before = std::string_view(text_).substr(0, offset(position));
  const std::size_t last = before.find_last_not_of(" \t\r\n");
  if (word.empty() || last == std::string_view::npos) return position;
  before = before.substr(0, last + 1);
  if (!before.ends_with(word)) return position;
  const std::size_t start = before.size() - word.size();
  const auto next_line = std::ranges::upper_bound(line_starts_, start);
  return {static_cast<int>(next_line - line_starts_.begin()), static_cast<int>(start - *(next_line - 1)) + 1};
}

std::string SourceText::describe(Position position, std::string_view message) const {
  std::string text = fmt::format("{}:{}:{}: error: {}", name_, position.line, position.column, printable(message));
  const std::string_view whole = line(position.line);
  if (whole.find_first_not_of(" \t\r") == std::string_view::npos) return text;

  // Long lines are cut around the column.
  const auto column = std::min(static_cast<std::size_t>(position.column - 1), whole.size());
  const std::size_t begin = column > kExcerptWidth / 2 ? column - kExcerptWidth / 2 : 0;
  std::string excerpt = printable(whole.substr(begin, kExcerptWidth));
  if (whole.ends_with('\r') && excerpt.ends_with('?')) excerpt.pop_back();
  const std::string gutter = fmt::format("{:5} | ", position.line);
  text += "\n" + gutter + excerpt + "\n" + std::string(gutter.size() - 2, ' ') + "| ";
  for (const char c : excerpt.substr(0, column - begin)) {
    if (!continues_utf8(c)) text += c == '\t' ? '\t' : ' ';
  }
  return text + "^";
}

}  // namespace arbalest::jobs
