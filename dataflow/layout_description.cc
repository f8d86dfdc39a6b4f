#include "dataflow/layout_description.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

// "conv1.weight 20x1x5x5 at 0 of 2560: ". The numbers of the native layout follow.
std::string parameter_and_place(const ParameterEntry& entry) {
  return fmt::format("{} {} at {} of {}: ", entry.name, engine::to_string(entry.spec.shape), entry.offset,
                     entry.native.bytes());
}

// The part of parameter_and_place() that no layout changes.
std::string parameter(const ParameterEntry& entry) {
  return fmt::format("{} {} at ", entry.name, engine::to_string(entry.spec.shape));
}

std::vector<std::int64_t> parse_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) engine::fail(engine::ErrorKind::kDevice, "'{}' are no numbers of a layout", text);
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return numbers;
}

}  // namespace

std::vector<std::string> describe_layout(const ParameterLayout& layout) {
  std::vector<std::string> description;
  for (const ParameterEntry& entry : layout.entries()) {
    description.push_back(
        fmt::format("{}{}", parameter_and_place(entry), fmt::join(entry.native.native()->numbers(), " ")));
  }
  return description;
}

ParameterLayout layout_of(const std::vector<std::string>& description, const ParameterLayout& own,
                          const engine::Device& device) {
  std::vector<ParameterEntry> entries = own.entries();
  if (entries.size() != description.size()) {
    engine::fail(engine::ErrorKind::kDevice, "a model of {} parameters cannot have a layout of {}", entries.size(),
                 description.size());
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ParameterEntry& entry = entries[i];
    const std::string_view text = description[i];
    if (!text.starts_with(parameter(entry))) {
      engine::fail(engine::ErrorKind::kDevice, "'{}' is not the layout of parameter '{}'", text, entry.name);
    }
    entry.native =
        device.layout_of(entry.native.shape(), entry.native.dtype(), parse_numbers(text.substr(text.rfind(": ") + 2)));
  }
  return ParameterLayout(std::move(entries));
}

}  // namespace arbalest::dataflow
