#include "cli/error_report.h"

#include <cstdio>

#include <fmt/format.h>

#include "messages/text_encoding.h"

namespace arbalest::cli {

int report_error(int code, const std::string& message) {
  // Messages like "file:line:column: error: ..." and "--set path=value: error: ..." need no prefix.
  const bool located = message.substr(0, message.find('\n')).find(": error: ") != std::string::npos;
  // fmt::print would throw, and the exit code must survive a stderr without reader.
  const std::string text =
      jobs::safe_text(fmt::format("{}{}\n", located ? "" : "arbalest: error: ", message), jobs::TextFor::kTerminal);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return code;
}

}  // namespace arbalest::cli
