#include "jobs/options/readers/growth_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "jobs/messages/text.h"
#include "jobs/options/readers/learners_reader.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kPath = "learners.per_device.growth";
constexpr double kDefaultShare = 0.6;  // fraction of the run's epochs; docs/synchronization.md has the measurement

// from, 2 from, 4 from, ..., to
std::vector<int> doublings(int from, int to) {
  std::vector<int> counts{from};
  while (counts.back() < to) counts.push_back(std::min(2 * counts.back(), to));
  return counts;
}

// Reports wrong numbers of learners. Returns whether there are none.
bool check_counts(const v1::Learners::Growth& growth, dataflow::FieldIssues& issues) {
  const std::string path(kPath);
  const bool is_one = growth.from() == 1 && growth.to() == 1;  // has an error of its own
  const std::string bad_to = is_one ? "" : dataflow::out_of_range("to", growth.to(), {2, kLearnersPerDevice.high});
  issues.add(path + ".to", bad_to);
  if (growth.from() < 1) issues.add(path + ".from", fmt::format("from must be at least 1, not {}", growth.from()));
  if (!bad_to.empty() || growth.from() < 1) return false;
  if (growth.from() > growth.to()) {
    issues.add(path + ".from", fmt::format("from must be below to, {}, not {}", growth.to(), growth.from()));
  } else if (growth.from() == growth.to()) {
    issues.add(path + ".to",
               fmt::format("growth from {} to {} has no effect; raise to, or write learners {{ per_device "
                           "{{ fixed: {} }} }}",
                           growth.from(), counted(growth.to(), "learner"), growth.to()));
  }
  return growth.from() < growth.to();
}

}  // namespace

void read_growth(v1::Learners::Growth& growth, JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path(kPath);
  const int max_epochs = options.training.max_epochs;
  if (!growth.has_to()) {
    issues.add(path, "to is missing: how many learners there are in the end, such as 16");
    return;
  }
  if (!growth.has_from()) growth.set_from(1);
  if (!growth.has_epochs()) growth.set_epochs(kDefaultShare * max_epochs);
  if (!check_counts(growth, issues)) return;
  if (!(growth.epochs() > 0.0 && growth.epochs() < max_epochs)) {
    issues.add(path + ".epochs", fmt::format("epochs must be above 0 and below training.max_epochs, {}, not {}",
                                             max_epochs, growth.epochs()));
  }
  const std::vector<int> counts = doublings(growth.from(), growth.to());
  const double interval = growth.epochs() / static_cast<double>(counts.size() - 1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    options.schedule.push_back({.per_device = std::vector<int>(options.devices.size(), counts[i]),
                                .at_epoch = static_cast<double>(i) * interval});
  }
  options.learners_per_device = options.schedule.front().per_device;
}

}  // namespace arbalest::jobs
