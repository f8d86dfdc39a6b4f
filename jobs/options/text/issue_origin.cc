#include "jobs/options/text/issue_origin.h"

namespace arbalest::jobs {

const std::string* IssueOrigin::setting_for(const std::string& path) {
  if (const std::string* origin = applied_.origin(path); origin != nullptr) return origin;
  for (std::size_t count = settings_.size(); count-- > 0;) {
    if (!wrong_[count].has_value()) wrong_[count] = find_wrong_(settings_.first(count));
    if (!wrong_[count]->contains(path)) return &settings_[count];
  }
  return nullptr;
}

}  // namespace arbalest::jobs
