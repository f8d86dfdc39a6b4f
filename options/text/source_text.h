// The text of a job file, and messages that point into it.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

// Counted from 1; columns count bytes.
struct Position {
  int line = 1;
  int column = 1;

  auto operator<=>(const Position&) const = default;
};

class SourceText {
 public:
  SourceText(std::string name, std::string text);

  const std::string& name() const noexcept { return name_; }
  const std::string& text() const noexcept { return text_; }

  // Converts a position of protobuf, which counts from 0 and expands tabs to multiples of 8 columns.
  Position from_protobuf(int line, int column) const;
  // Returns the begin of `word` if the text before `position` ends with it (ignoring blanks); else `position`.
  Position start_of(std::string_view word, Position position) const;

  // Offset in the text, counted from 0; the text's end for positions beyond it.
  std::size_t offset(Position position) const;

  // Returns "name:line:column: error: message", the line, and a caret below the column.
  std::string describe(Position position, std::string_view message) const;

 private:
  std::string_view line(int number) const;

  // A tab, and the protobuf columns at which it begins and ends.
  struct Tab {
    std::size_t offset = 0;
    int begin = 0;
    int end = 0;
  };

  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
  std::vector<Tab> tabs_;
};

}  // namespace arbalest::jobs
