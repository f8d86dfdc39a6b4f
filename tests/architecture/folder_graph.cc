#include "tests/architecture/folder_graph.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <regex>
#include <sstream>

#include "tests/architecture/source_text.h"

namespace arbalest::tests {

void FolderGraph::add(const std::string& path, const std::string& text) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+/[^"/]+)")re");
  const std::string from = std::filesystem::path(path).parent_path().generic_string();
  std::istringstream lines(without_comments(text));
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, match, kInclude)) continue;
    const std::string to = std::filesystem::path(match[1].str()).parent_path().generic_string();
    if (to != from) includes_[from].insert(to);
  }
}

std::vector<std::string> FolderGraph::circle() const {
  std::set<std::string> done;
  std::vector<std::string> way;  // from where the search began to the present folder
  std::vector<std::string> found;
  const std::function<bool(const std::string&)> leads_back = [&](const std::string& folder) {
    if (const auto seen = std::ranges::find(way, folder); seen != way.end()) {
      found.assign(seen, way.end());
      return true;
    }
    if (done.contains(folder) || !includes_.contains(folder)) return false;
    way.push_back(folder);
    const bool is_found = std::ranges::any_of(includes_.at(folder), leads_back);
    way.pop_back();
    done.insert(folder);
    return is_found;
  };
  for (const auto& [folder, others] : includes_) {
    if (leads_back(folder)) break;
  }
  return found;
}

}  // namespace arbalest::tests
