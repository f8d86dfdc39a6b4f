#include "options/parameters/parameter_patterns.h"

#include <algorithm>

#include <fmt/format.h>

#include "dataflow/parameter_rules.h"
#include "engine/base/nearest_name.h"

namespace arbalest::jobs {

namespace {

// "no parameter or layer of the model matches "cnv1"; did you mean 'conv1'?"
std::string unmatched(const NamePattern& pattern, const std::vector<dataflow::NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const dataflow::NamedParameter& parameter : parameters) {
    if (pattern.matches(parameter.name)) return "";
    const std::string layer(layer_of(parameter.name));
    if (names.empty() || names.back() != layer) names.push_back(layer);
  }
  for (const dataflow::NamedParameter& parameter : parameters) names.push_back(parameter.name);
  std::string hint = engine::did_you_mean(pattern.text(), names);
  if (hint.empty())
    hint = fmt::format("; its first is '{}', and `arbalest inspect` lists its layers", parameters.front().name);
  return fmt::format("no parameter or layer of the model matches \"{}\"{}", pattern.text(), hint);
}

}  // namespace

std::vector<NamePattern> read_patterns(const std::string& path,
                                       const google::protobuf::RepeatedPtrField<std::string>& texts,
                                       const dataflow::Graph* graph, dataflow::FieldIssues& issues) {
  std::vector<dataflow::NamedParameter> parameters;
  if (graph != nullptr) parameters = dataflow::named_parameters(*graph);
  std::vector<NamePattern> patterns;
  for (const std::string& text : texts) {
    const std::string place = fmt::format("{}[{}]", path, patterns.size());
    const NamePattern& pattern = patterns.emplace_back(text);
    if (text.empty()) {
      issues.add(place, "the pattern is empty; name a parameter or a layer, such as \"fc\", or several with \"fc*\"");
    } else if (graph != nullptr) {
      issues.add(place, unmatched(pattern, parameters));
    }
  }
  return patterns;
}

bool matches_any(std::span<const NamePattern> patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [&](const NamePattern& pattern) { return pattern.matches(name); });
}

}  // namespace arbalest::jobs
