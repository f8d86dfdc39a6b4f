// A bar with a text behind it, for a terminal that can rewrite a line.
#pragma once

#include <string>

namespace arbalest::jobs {

inline constexpr const char* kClearLine = "\r\x1b[K";  // deletes the last line, so that another can take its place

struct TerminalSize {
  int columns = 80;
  bool color = false;
};

// "[######....] text", no longer than the terminal is wide, because a line that wraps could not be overwritten. `done`:
// a fraction.
std::string progress_bar(double done, const std::string& text, const TerminalSize& terminal);

}  // namespace arbalest::jobs
