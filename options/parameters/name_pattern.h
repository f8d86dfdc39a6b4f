// Patterns of names of parameters and tensors: '*' stands for any characters, '?' for one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

class NamePattern {
 public:
  explicit NamePattern(std::string text) : text_(std::move(text)) {}

  const std::string& text() const noexcept { return text_; }
  // The wildcards of the pattern, in order: "*?".
  std::string wildcards() const;

  // Returns what the wildcards stand for if the pattern matches the whole name; none if it does not. A '*' that others
  // follow stands for as few characters as possible.
  std::optional<std::vector<std::string>> match(std::string_view name) const;
  // Whether the pattern matches "layer1.0.bn1.weight" as a whole, or the layer's name, "layer1.0.bn1".
  bool matches(std::string_view name) const;

 private:
  std::string text_;
};

// The name without its last part: the layer of a parameter. "" if the name has one part.
std::string_view layer_of(std::string_view name);

// Replaces the wildcards of `pattern` by `texts`, in order. There must be one text for each.
std::string fill_wildcards(std::string_view pattern, const std::vector<std::string>& texts);

}  // namespace arbalest::jobs
