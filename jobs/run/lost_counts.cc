#include "jobs/run/lost_counts.h"

#include <algorithm>
#include <functional>
#include <system_error>

#include "engine/error.h"
#include "jobs/wording/failure.h"

namespace arbalest::jobs {

bool is_shortage(const std::exception& error) {
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    if (system->code() == std::errc::resource_unavailable_try_again) return true;
  }
  return as_error(error).kind() == engine::ErrorKind::kOutOfMemory;
}

void LostCounts::add(const std::vector<int>& from, const std::vector<int>& to) {
  lost_.push_back({to, !std::ranges::equal(to, from, std::less_equal())});
}

bool LostCounts::contain(const std::vector<int>& counts) const {
  return std::ranges::any_of(lost_, [&](const Lost& lost) {
    return lost.grew ? std::ranges::equal(counts, lost.counts, std::greater_equal()) : counts == lost.counts;
  });
}

}  // namespace arbalest::jobs
