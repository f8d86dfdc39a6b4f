#include "messages/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

constexpr double kSlack = 1e-10;  // of percentages: fractions such as 0.29 * 100 = 28.999999999999996 are rounded

bool reaches(double percentage, double limit) { return percentage >= limit - kSlack; }

// As many decimals as `suffices` asks for, which gets the number that would be shown; at least 2.
std::string percent_with_decimals(double fraction, const auto& suffices) {
  constexpr int kMostDecimals = 9;
  const double percentage = unsigned_nan(100.0 * fraction);
  int decimals = 2;
  std::string text = fmt::format("{:.{}f}", percentage, decimals);
  while (decimals < kMostDecimals && !suffices(std::stod(text))) {
    text = fmt::format("{:.{}f}", percentage, ++decimals);
  }
  return text + " %";
}

}  // namespace

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first_digit = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
  const char* plural = count == 1 ? "" : noun.ends_with("tch") ? "es" : "s";
  return fmt::format("{} {}{}", grouped(count), noun, plural);
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(std::max(0.0, seconds)));
  const std::int64_t minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string percent(double fraction, double limit) {
  const auto same_side = [&](double shown, double of) {
    return reaches(shown, 100.0 * of) == reaches(100.0 * fraction, 100.0 * of);
  };
  return percent_with_decimals(fraction,
                               [&](double shown) { return same_side(shown, limit) && same_side(shown, 1.0); });
}

std::string target_percent(double target) {
  return percent_with_decimals(target, [&](double shown) { return std::abs(shown - 100.0 * target) < kSlack; });
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string loss_text(double loss) {
  constexpr double kReadable = 1e6;
  return std::abs(loss) < kReadable ? fmt::format("{:.4f}", loss) : fmt::format("{:.4g}", unsigned_nan(loss));
}

std::string epochs_text(double epochs) {
  if (epochs > 0.0 && epochs < 0.1) return fmt::format("{:.1g} epochs", epochs);
  std::string text = fmt::format("{:.1f}", epochs);
  if (text.ends_with(".0")) text = fmt::format("{:.2f}", epochs);
  if (text.ends_with(".00")) return counted(std::llround(epochs), "epoch");
  return text + " epochs";
}

std::string fraction_hint(double value, double most) {
  constexpr double kPercent = 100.0;
  constexpr double kLeastPercentage = 2.0;
  const bool is_percentage = value >= kLeastPercentage && value <= kPercent * most;
  return is_percentage ? fmt::format("; did you mean {:.6g}?", value / kPercent) : "";
}

double unsigned_nan(double value) { return std::isnan(value) ? std::abs(value) : value; }

namespace {

// Columns that a terminal needs for UTF-8: as fmt counts, which pads by them.
std::size_t width_of(const std::string& text) {
  const std::size_t padding = fmt::format("{:>{}}", text, text.size()).size() - text.size();
  return text.size() - padding;
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (column > 0) line += "  ";
      line += column < left_columns ? fmt::format("{:<{}}", row[column], widths[column])
                                    : fmt::format("{:>{}}", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace arbalest::jobs
