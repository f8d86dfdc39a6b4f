#include "options/parameters/initialize_reader.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "dataflow/models/fields/field_ranges.h"
#include "dataflow/parameter_rules.h"
#include "options/parameters/parameter_patterns.h"

namespace arbalest::jobs {

namespace {

std::string rename_problem(const v1::Initialize::Rename& rename) {
  if (rename.from().empty() || rename.to().empty()) return "";  // issues of their own
  if (NamePattern(rename.from()).wildcards() == NamePattern(rename.to()).wildcards()) return "";
  return fmt::format(
      "\"{}\" and \"{}\" must have the same '*' and '?' in the same order, because those of `to` stand "
      "for what those of `from` match",
      rename.from(), rename.to());
}

}  // namespace

void fill_defaults(v1::Initialize& initialize, const std::string& file) {
  const std::filesystem::path from = initialize.from();
  if (from.empty() || from.is_absolute()) return;
  initialize.set_from((std::filesystem::absolute(file).parent_path() / from).lexically_normal().string());
}

InitializeOptions read_initialize(const v1::Initialize& initialize, const dataflow::Graph* graph,
                                  dataflow::FieldIssues& issues) {
  dataflow::check_fields(initialize, "initialize", issues);
  InitializeOptions options;
  options.path = initialize.from();
  for (int i = 0; i < initialize.rename_size(); ++i) {
    const v1::Initialize::Rename& rename = initialize.rename(i);
    const std::string problem = rename_problem(rename);
    issues.add(fmt::format("initialize.rename[{}].to", i), problem);
    if (problem.empty()) options.renames.push_back({NamePattern(rename.from()), rename.to()});
  }
  options.fresh = read_patterns("initialize.fresh", initialize.fresh(), graph, issues);
  options.ignore = read_patterns("initialize.ignore", initialize.ignore(), nullptr, issues);
  return options;
}

std::string initialize_warning(const InitializeOptions& options, const dataflow::Graph& graph) {
  for (const dataflow::NamedParameter& parameter : dataflow::named_parameters(graph)) {
    if (!parameter.spec.is_frozen || parameter.spec.is_statistic()) continue;
    if (!matches_any(options.fresh, parameter.name)) continue;
    return fmt::format(
        "'{}' is both fresh (initialize.fresh) and frozen (training.freeze): it stays at its initial "
        "values",
        parameter.name);
  }
  return "";
}

}  // namespace arbalest::jobs
