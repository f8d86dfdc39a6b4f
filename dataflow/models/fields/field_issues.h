// Issues of a message's fields, collected so that all are reported at once.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

namespace arbalest::dataflow {

struct FieldIssue {
  std::string path;     // "layers[2].conv.filters", relative to the message that was read
  std::string message;  // names the field
};

class FieldIssues {
 public:
  // Adds an issue. Does nothing if `message` is empty or the field has an issue already.
  void add(std::string path, std::string message);
  // Adds an issue of a layer or model as a whole, which may have several.
  void add_another(std::string path, std::string message);
  bool empty() const noexcept { return issues_.empty(); }
  bool has(const std::string& path) const { return paths_.contains(path); }
  // Whether the field, or one within it, has an issue.
  bool has_within(const std::string& path) const;
  const std::vector<FieldIssue>& all() const noexcept { return issues_; }

 private:
  std::vector<FieldIssue> issues_;
  std::unordered_set<std::string> paths_;
};

template <typename T>
struct Range {
  T low;
  T high;
  bool low_is_open = false;
  bool high_is_open = false;
};

// above() is the range (low, high], below() is [low, high).
template <typename T>
constexpr Range<T> above(T low, T high) {
  return {low, high, true, false};
}
template <typename T>
constexpr Range<T> below(T low, T high) {
  return {low, high, false, true};
}

// Returns "batch_size must be in [1, 60000], not 0", or "" if the value is in the range. NaN is in no range.
template <typename T>
std::string out_of_range(std::string_view name, T value, const Range<T>& range) {
  const bool is_above = range.low_is_open ? value > range.low : value >= range.low;
  const bool is_below = range.high_is_open ? value < range.high : value <= range.high;
  if (is_above && is_below) return "";
  return fmt::format("{} must be in {}{}, {}{}, not {}", name, range.low_is_open ? '(' : '[', range.low, range.high,
                     range.high_is_open ? ')' : ']', value);
}

}  // namespace arbalest::dataflow
