#include "train/weights/mismatches.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "messages/text.h"
#include "options/parameters/name_pattern.h"

namespace arbalest::jobs {

namespace {

std::string shape_text(const engine::Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

// `fresh: "fc" fresh: "bn1.bias"`: a layer stands for its tensors if none of them fits.
std::string patterns_for(const char* field, const std::vector<std::string>& names,
                         const std::vector<std::string>& fitting) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> layers;
  for (const std::string& name : names) {
    const std::string_view layer = layer_of(name);
    const bool has_fitting = std::ranges::any_of(fitting, [&](const auto& other) { return layer_of(other) == layer; });
    const std::string pattern(layer.empty() || has_fitting ? name : layer);
    if (std::ranges::find(layers, pattern) == layers.end()) layers.push_back(pattern);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(layers.size(), kShown); ++i) {
    text += fmt::format("{}{}: \"{}\"", i == 0 ? "" : " ", field, layers[i]);
  }
  return layers.size() > kShown ? text + " ..." : text;
}

// The prefix that `longer` puts before each name of `shorter`; none if there is no such prefix.
std::optional<std::string> prefix_of(const std::vector<Mismatches::Tensor>& longer,
                                     const std::vector<Mismatches::Tensor>& shorter) {
  std::set<std::string_view> names;
  for (const Mismatches::Tensor& tensor : longer) names.insert(tensor.name);
  for (const Mismatches::Tensor& tensor : longer) {
    const std::string& first = shorter.front().name;
    if (tensor.name.size() <= first.size() || !tensor.name.ends_with(first)) continue;
    const std::string prefix = tensor.name.substr(0, tensor.name.size() - first.size());
    const bool fits =
        std::ranges::all_of(shorter, [&](const Mismatches::Tensor& one) { return names.contains(prefix + one.name); });
    if (fits) return prefix;
  }
  return std::nullopt;
}

// A renaming that explains all that is missing; "" if there is none.
std::string renaming(const Mismatches& mismatches) {
  if (mismatches.missing.empty() || mismatches.unexpected.empty()) return "";
  if (const auto prefix = prefix_of(mismatches.unexpected, mismatches.missing)) {
    return fmt::format("rename {{ from: \"{}*\" to: \"*\" }}", *prefix);
  }
  const auto prefix = prefix_of(mismatches.missing, mismatches.unexpected);
  return prefix ? fmt::format("rename {{ from: \"*\" to: \"{}*\" }}", *prefix) : "";
}

std::string advice(const Mismatches& mismatches) {
  if (std::string rename = renaming(mismatches); !rename.empty()) return "add to initialize: " + rename;
  std::vector<std::string> fresh;
  for (const Mismatches::Tensor& tensor : mismatches.missing) fresh.push_back(tensor.name);
  for (const Mismatches::Misshapen& tensor : mismatches.misshapen) fresh.push_back(tensor.name);
  std::vector<std::string> ignored;
  for (const Mismatches::Tensor& tensor : mismatches.unexpected) ignored.push_back(tensor.name);
  std::string text;
  if (!fresh.empty()) text += patterns_for("fresh", fresh, mismatches.fitting) + " to start with initial values";
  if (!ignored.empty()) {
    text += fmt::format("{}{} to leave out what the model lacks", text.empty() ? "" : "; ",
                        patterns_for("ignore", ignored, mismatches.fitting));
  }
  if (!fresh.empty() && !ignored.empty()) text += "; or rename { from: \"...\" to: \"...\" } where only names differ";
  return text.empty() ? "" : "add to initialize: " + text;
}

}  // namespace

std::string describe(const Mismatches& mismatches, const std::string& path) {
  std::string text = fmt::format("'{}' does not fit the model:", path);
  for (const Mismatches::Tensor& tensor : mismatches.missing) {
    text += fmt::format("\n  missing: '{}' {}", tensor.name, shape_text(tensor.shape));
  }
  for (const Mismatches::Misshapen& tensor : mismatches.misshapen) {
    text += fmt::format("\n  shape: '{}' is {} in the file and {} in the model", tensor.name,
                        shape_text(tensor.in_file), shape_text(tensor.in_model));
  }
  for (const Mismatches::Tensor& tensor : mismatches.unexpected) {
    const std::string renamed = tensor.renamed.empty() ? "" : fmt::format(", renamed to '{}',", tensor.renamed);
    text += fmt::format("\n  unexpected: '{}'{} {}", tensor.name, renamed, shape_text(tensor.shape));
  }
  for (const std::string& other : mismatches.others) text += "\n  " + other;
  for (const std::string& pattern : mismatches.unused)
    text += fmt::format("\n  {} matches no tensor of the file", pattern);
  const std::string to_do = advice(mismatches);
  return to_do.empty() ? text : text + "\n" + to_do;
}

}  // namespace arbalest::jobs
