// A FolderGraph knows which folders include which, at every depth.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace arbalest::tests {

class FolderGraph {
 public:
  // Adds the includes of one file. `path` and the names in quotes are relative to the root.
  void add(const std::string& path, const std::string& text);

  // Returns folders each of which includes the next, and the last of which includes the first; empty if there are none.
  // A folder and its subfolder count as two.
  std::vector<std::string> circle() const;

 private:
  std::map<std::string, std::set<std::string>> includes_;
};

}  // namespace arbalest::tests
