#include "jobs/study/bench/bench_names.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace arbalest::jobs {

namespace {

constexpr std::string_view kLearnerPaths = "learners";
constexpr std::string_view kFixedPath = "learners.per_device.fixed";

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

class CaseNames {
 public:
  CaseNames(const BenchPlan& plan, bool has_one_device) : plan_(plan), has_one_device_(has_one_device) {}

  // `with_learners`: whether the name includes numbers of learners.
  std::string of(const BenchCase& named, bool with_learners) const {
    std::vector<std::string> parts;
    const bool is_copy = named.label != full_label(named);  // " (2)" follows then
    const bool has_job = is_copy || std::ranges::any_of(plan_.cases, [&](const BenchCase& other) {
                           return other.job != named.job || other.job_path != named.job_path;
                         });
    if (has_job) parts.push_back(named.job);
    if (is_copy) parts.back() += named.label.substr(full_label(named).size());
    for (const auto& [path, value] : named.varied) {
      if (!differs(path) || (!with_learners && path.starts_with(kLearnerPaths))) continue;
      parts.push_back(part_of(path, value));
    }
    return parts.empty() ? named.job : fmt::format("{}", fmt::join(parts, ", "));
  }

 private:
  static std::string full_label(const BenchCase& of) {
    std::string label = of.job;
    for (const auto& [path, value] : of.varied) label += fmt::format(" {}={}", path, value);
    return label;
  }

  bool differs(const std::string& path) const {
    std::set<std::string> values;
    for (const BenchCase& of : plan_.cases) {
      for (const auto& [other, value] : of.varied) {
        if (other == path) values.insert(value);
      }
    }
    return values.size() > 1;
  }

  bool is_unique(std::string_view last) const {
    const auto& varied = plan_.cases.front().varied;
    return std::ranges::count_if(varied, [&](const auto& pair) { return last_part(pair.first) == last; }) == 1;
  }

  std::string part_of(const std::string& path, const std::string& value) const {
    if (path == kFixedPath) {
      return fmt::format("{} learner{}{}", value, value == "1" ? "" : "s", has_one_device_ ? "" : " per device");
    }
    if (path.find('.') == std::string::npos) return value;  // a message, whose alternatives explain themselves
    return fmt::format("{}={}", is_unique(last_part(path)) ? last_part(path) : path, value);
  }

  const BenchPlan& plan_;
  bool has_one_device_;
};

}  // namespace

void shorten_names(BenchPlan& plan, bool has_one_device) {
  const CaseNames names(plan, has_one_device);
  for (BenchCase& of : plan.cases) {
    of.name = names.of(of, true);
    of.series_name = names.of(of, false);
  }
}

}  // namespace arbalest::jobs
