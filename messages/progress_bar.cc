#include "messages/progress_bar.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

namespace arbalest::jobs {

std::string progress_bar(double done, const std::string& text, const TerminalSize& terminal) {
  constexpr std::size_t kMostCells = 30;
  const auto columns = static_cast<std::size_t>(std::max(terminal.columns - 1, 0));
  const std::size_t cells = std::min(columns > text.size() + 3 ? columns - text.size() - 3 : 0, kMostCells);
  const auto filled = static_cast<std::size_t>(std::lround(std::clamp(done, 0.0, 1.0) * static_cast<double>(cells)));
  std::string bar = cells == 0 ? "" : fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", cells - filled);
  bar = (bar + " " + text).substr(0, columns);
  if (terminal.color && cells > 0) bar.insert(1 + filled, "\x1b[0m").insert(1, "\x1b[32m");
  return bar;
}

}  // namespace arbalest::jobs
