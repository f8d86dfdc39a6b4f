// Checks and cleans text from outside, which may hold any bytes.
#pragma once

#include <string>
#include <string_view>

namespace arbalest::jobs {

bool is_utf8(std::string_view text);

// Whether `c` is a control character: below space, or delete.
bool is_control(char c);

// The place where text is shown decides what is harmless there. Names of files and folders, and whatever else comes
// from outside, go through safe_text() on their way.
enum class TextFor {
  kLine,       // one line of a terminal or a log
  kTerminal,   // the same, but line breaks stay
  kHtml,       // HTML, XML or SVG: content, or an attribute in double quotes
  kMarkdown,   // within a line, or the cell of a table
  kCsv,        // a field of RFC 4180, where line breaks stay; bytes that are not UTF-8 become U+FFFD
  kPrometheus  // the value of a label, in double quotes
};

// Returns the text with '?' for control characters except tabs, among them those of Unicode that begin lines or change
// the direction of text, and for bytes that are not UTF-8. What has a meaning for the target is escaped. Files for
// programs (JSON) need none of this.
std::string safe_text(std::string_view text, TextFor target);

// safe_text() for one line.
std::string printable(std::string_view text);

// Returns about the first 100 bytes, and "..." if there are more.
std::string shortened(std::string_view text);

}  // namespace arbalest::jobs
