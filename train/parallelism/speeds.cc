#include "train/parallelism/speeds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <system_error>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace {

using engine::ErrorKind;
using engine::fail;

struct Unit {
  std::string_view name;
  double factor;
  double divisor = 1.0;  // division rounds 5us to the number that 5e-6 is
};

constexpr double kBitsOfByte = 8.0;
constexpr double kKibi = 1024.0;
constexpr double kLongLatency = 1.0;  // seconds: no link is as slow as that

constexpr Unit kSpeedUnits[] = {{"B/s", 1.0},
                                {"kB/s", 1e3},
                                {"MB/s", 1e6},
                                {"GB/s", 1e9},
                                {"TB/s", 1e12},
                                {"KiB/s", kKibi},
                                {"MiB/s", kKibi* kKibi},
                                {"GiB/s", kKibi* kKibi* kKibi},
                                {"bit/s", 1.0, kBitsOfByte},
                                {"kbit/s", 1e3, kBitsOfByte},
                                {"Mbit/s", 1e6, kBitsOfByte},
                                {"Gbit/s", 1e9, kBitsOfByte},
                                {"Tbit/s", 1e12, kBitsOfByte}};
constexpr Unit kTimeUnits[] = {{"s", 1.0}, {"ms", 1.0, 1e3}, {"us", 1.0, 1e6}, {"ns", 1.0, 1e9}};
constexpr Unit kComputeUnits[] = {
    {"FLOP/s", 1.0}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string names(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units) list += (list.empty() ? "" : ", ") + std::string(unit.name);
  return list;
}

struct Quantity {
  std::string_view what;     // "speed"
  std::string_view example;  // "12GB/s"
  std::span<const Unit> units;
};

constexpr Quantity kSpeed{"speed", "12GB/s", kSpeedUnits};
constexpr Quantity kLatency{"latency", "5us", kTimeUnits};
constexpr Quantity kComputeSpeed{"compute speed", "10TFLOP/s", kComputeUnits};

// Reads a number with a unit. Returns it in the base unit.
double parse(std::string_view option, std::string_view text, const Quantity& quantity) {
  text = trimmed(text);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) {
    fail(ErrorKind::kUsage, "{}: the {} '{}' is no finite number with a unit; write it like {}", option, quantity.what,
         text, quantity.example);
  }
  const std::string_view name = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  const auto* const unit = std::ranges::find(quantity.units, name, &Unit::name).base();
  if (unit == quantity.units.data() + quantity.units.size()) {
    const std::string problem = name.empty() ? "has no unit" : fmt::format("has the unknown unit '{}'", name);
    fail(ErrorKind::kUsage, "{}: the {} '{}' {}; write it like {}, with one of {}", option, quantity.what, text,
         problem, quantity.example, names(quantity.units));
  }
  return number * unit->factor / unit->divisor;
}

double positive(std::string_view option, std::string_view text, const Quantity& quantity) {
  const double value = parse(option, text, quantity);
  if (!(value > 0.0) || !std::isfinite(value)) {
    fail(ErrorKind::kUsage, "{}: the {} must be positive and finite (got {}); write it like {}", option, quantity.what,
         trimmed(text), quantity.example);
  }
  return value;
}

}  // namespace

Link parse_link(std::string_view option, std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    fail(ErrorKind::kUsage, "{}: '{}' is not a speed and a latency; write both, like 12GB/s,5us", option, text);
  }
  const Link link{positive(option, text.substr(0, comma), kSpeed), parse(option, text.substr(comma + 1), kLatency)};
  if (link.latency_seconds < 0.0) {
    fail(ErrorKind::kUsage, "{}: the latency must not be negative (got {}); write it like 5us", option,
         trimmed(text.substr(comma + 1)));
  }
  if (link.latency_seconds >= kLongLatency) {
    fail(
        ErrorKind::kUsage,
        "{}: a latency of {} would make every message take a second or more; links take microseconds, as in 12GB/s,5us",
        option, trimmed(text.substr(comma + 1)));
  }
  return link;
}

double parse_compute_speed(std::string_view option, std::string_view text) {
  return positive(option, text, kComputeSpeed);
}

}  // namespace arbalest::jobs
