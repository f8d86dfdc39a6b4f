#include "options/readers/growth_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "dataflow/models/fields/field_ranges.h"
#include "messages/text.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kGrowthPath = "learners.per_device.growth";
constexpr double kDefaultShare = 0.6;  // fraction of the run's epochs; docs/synchronization.md has the measurement

// from, 2 from, 4 from, ..., to
std::vector<int> doublings(int from, int to) {
  std::vector<int> counts{from};
  while (counts.back() < to) counts.push_back(std::min(2 * counts.back(), to));
  return counts;
}

}  // namespace

void check_growth(const v1::Learners::Growth& growth, dataflow::FieldIssues& issues) {
  const std::string path(kGrowthPath);
  if (!growth.has_to() || growth.from() < 1) return;
  if (growth.from() == growth.to()) {
    issues.add(path + ".to",
               fmt::format("growth from {} to {} has no effect; raise to, or write learners {{ per_device "
                           "{{ fixed: {} }} }}",
                           growth.from(), counted(growth.to(), "learner"), growth.to()));
  } else if (growth.from() > growth.to() && dataflow::field_problem(growth, "to").empty()) {
    issues.add(path + ".from", fmt::format("from must be below to, {}, not {}", growth.to(), growth.from()));
  }
}

void read_growth(v1::Learners::Growth& growth, JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path(kGrowthPath);
  const int max_epochs = options.training.max_epochs;
  if (!growth.has_epochs()) growth.set_epochs(kDefaultShare * max_epochs);
  if (!growth.has_to() || issues.has(path + ".from") || issues.has(path + ".to")) return;
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
