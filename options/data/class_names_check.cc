#include "options/data/class_names_check.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "messages/text.h"
#include "messages/text_encoding.h"

namespace arbalest::jobs {

std::vector<NameProblem> class_name_problems(std::span<const std::string> names) {
  std::vector<NameProblem> problems;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const auto [first, is_new] = known.emplace(name, i);
    if (name.empty()) {
      problems.push_back({i, fmt::format("the name of class {} is empty", i)});
    } else if (!is_utf8(name)) {
      problems.push_back({i, fmt::format("the name of class {}, '{}', is not UTF-8", i, shortened(printable(name)))});
    } else if (std::ranges::any_of(name, is_control)) {
      problems.push_back({i, fmt::format("the name of class {}, '{}', has a line break, a tab or another control "
                                         "character",
                                         i, shortened(printable(name)))});
    } else if (!is_new) {
      problems.push_back({i, fmt::format("'{}' is the name of class {}, too; give each class a name of its own",
                                         shortened(name), first->second)});
    }
  }
  return problems;
}

std::string class_count_problem(std::size_t names, std::int64_t classes) {
  if (std::cmp_equal(names, classes)) return "";
  return fmt::format("has {} for {}; give one name for each class", counted(static_cast<std::int64_t>(names), "name"),
                     classes == 1 ? "1 class" : fmt::format("{} classes", grouped(classes)));
}

}  // namespace arbalest::jobs
