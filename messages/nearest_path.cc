#include "messages/nearest_path.h"

#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "engine/base/nearest_name.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

std::string nearest_path_hint(const fs::path& path) {
  fs::path missing = path.lexically_normal();
  std::error_code error;
  while (missing.has_parent_path() && missing.parent_path() != missing && !fs::exists(missing.parent_path(), error)) {
    missing = missing.parent_path();
  }
  const fs::path parent = missing.has_parent_path() ? missing.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    // A link to a file that is missing has the name itself.
    if (entry->path().filename() != missing.filename()) names.push_back(entry->path().filename().string());
  }
  const std::string nearest = engine::nearest_name(missing.filename().string(), names);
  if (!nearest.empty()) {
    return fmt::format("; did you mean '{}'?",
                       (missing.has_parent_path() ? parent / nearest : fs::path(nearest)).string());
  }
  return missing == path.lexically_normal() ? "" : fmt::format("; there is no '{}'", missing.string());
}

}  // namespace arbalest::jobs
