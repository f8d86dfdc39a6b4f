#include "study/bench/bench_plan.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "messages/text.h"
#include "options/loading/evaluation_job.h"
#include "options/loading/load_job.h"
#include "options/loading/parsed_job.h"
#include "options/sparse/graph_needed.h"
#include "saved_model/sha256.h"
#include "study/seed_list.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr const char* kSeedPath = "training.seed";
constexpr const char* kTargetPath = "training.target_accuracy";

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

// Sets `name` and `series_name` of every case from its job, label and variations. The name lists the values that differ
// between cases: "local_sgd, with_learners=SQRT, 4 learners"; the job's name comes first if there are several jobs.
void shorten_names(BenchPlan& plan, bool has_one_device) {
  const CaseNames names(plan, has_one_device);
  for (BenchCase& of : plan.cases) {
    of.name = names.of(of, true);
    of.series_name = names.of(of, false);
  }
}

struct Variation {
  std::string path;
  std::vector<std::string> values;
};

// Splits at commas outside of brackets and quotes.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  return parts;
}

std::string path_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

// Seeds and target have options of their own, which would silently win.
void check_path(const std::string& option, const std::string& setting) {
  const std::string path = path_of(setting);
  if (path == kSeedPath) fail(ErrorKind::kUsage, "{} {}: give the seeds with --seeds", option, setting);
  if (path == kTargetPath) fail(ErrorKind::kUsage, "{} {}: give the target with --target", option, setting);
}

std::vector<Variation> parse_variations(const std::vector<std::string>& texts) {
  std::vector<Variation> variations;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail(ErrorKind::kUsage, "--vary {}: expected path=value,value, as in training.batch_size=16,32", text);
    }
    check_path("--vary", text);
    Variation variation{text.substr(0, equals), split(std::string_view(text).substr(equals + 1))};
    const auto is_same = [&](const Variation& other) { return other.path == variation.path; };
    if (std::ranges::any_of(variations, is_same)) {
      fail(ErrorKind::kUsage, "--vary {}: {} varies already; list all its values at once", text, variation.path);
    }
    std::vector<std::string> sorted = variation.values;
    std::ranges::sort(sorted);
    if (sorted.front().empty()) fail(ErrorKind::kUsage, "--vary {}: a value is missing", text);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      fail(ErrorKind::kUsage, "--vary {}: {} is given twice", text, *twice);
    }
    variations.push_back(std::move(variation));
  }
  return variations;
}

// All combinations, the last variation fastest; one empty combination if there are no variations.
std::vector<std::vector<std::pair<std::string, std::string>>> combine(const std::vector<Variation>& variations) {
  std::vector<std::vector<std::pair<std::string, std::string>>> combinations(1);
  for (const Variation& variation : variations) {
    std::vector<std::vector<std::pair<std::string, std::string>>> longer;
    for (const auto& shorter : combinations) {
      for (const std::string& value : variation.values) {
        longer.push_back(shorter);
        longer.back().emplace_back(variation.path, value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

// Rewrites load_job's message about a --set that the user has written as a --vary.
std::string name_variation(std::string message, const BenchCase& of) {
  for (const auto& [path, value] : of.varied) {
    const std::string wrong = fmt::format("--set {}={}: error: ", path, value);
    for (std::size_t at = 0; (at = message.find(wrong, at)) != std::string::npos;) message.replace(at, 5, "--vary");
  }
  return message;
}

void check_kind(const JobOptions& job, const std::string& path) {
  require_graph(job, "arbalest bench");
  if (job.data.kind != DataOptions::Kind::kRatings) return;
  fail(ErrorKind::kUsage, "'{}' trains on ratings, which have no accuracy: bench is for classifiers", path);
}

// Sparse jobs refuse bench's own setting of the target. The user is told instead that bench is not for such jobs.
void check_sparse(const BenchCase& of) {
  if (!is_sparse_job_file(of.job_path)) return;
  std::vector<std::string> given = of.settings;
  std::erase_if(given, [](const std::string& setting) { return setting.starts_with(kTargetPath); });
  check_kind(load_job(of.job_path, given), of.job_path);
}

JobOptions load_case(const BenchCase& of) {
  try {
    check_sparse(of);
    JobOptions job = load_job(of.job_path, of.settings);
    check_kind(job, of.job_path);
    return job;
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), name_variation(error.what(), of));
  }
}

BenchCase make_case(const BenchRequest& request, const std::string& path,
                    const std::vector<std::pair<std::string, std::string>>& varied) {
  BenchCase made{.job_path = path,
                 .job = {},
                 .label = {},
                 .name = {},
                 .series_name = {},
                 .directory = {},
                 .settings = request.settings,
                 .varied = varied,
                 .batch_size = 0,
                 .job_sha256 = {}};
  for (const auto& [varied_path, value] : varied) made.settings.push_back(fmt::format("{}={}", varied_path, value));
  if (request.target) made.settings.push_back(fmt::format("{}={}", kTargetPath, *request.target));
  if (request.no_target) made.settings.push_back(fmt::format("{}=default", kTargetPath));
  return made;
}

void name_case(BenchCase& named, const std::vector<BenchCase>& before) {
  named.label = named.job;
  for (const auto& [path, value] : named.varied) named.label += fmt::format(" {}={}", path, value);
  const auto same = [&](const BenchCase& other) { return other.job == named.job && other.varied == named.varied; };
  if (const auto copies = std::ranges::count_if(before, same); copies > 0) {
    named.label += fmt::format(" ({})", copies + 1);
  }
  named.directory = fmt::format("{}-{}", before.size() + 1, named.job);
}

std::string target_text(std::optional<double> target) { return target ? fmt::format("{}", *target) : "none"; }

// All jobs must have the same target; `first`: the first job's.
void check_same_target(std::optional<double> first, std::optional<double> target) {
  if (first == target) return;
  fail(
      ErrorKind::kUsage,
      "the jobs have different target accuracies ({} and {}): give one for all with --target, or none with --no-target",
      target_text(first), target_text(target));
}

std::string sha256_of(const std::string& text) {
  Sha256 sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.finish();
}

}  // namespace

void check_target(double target) {
  if (target > 0.0 && target <= 1.0) return;
  fail(ErrorKind::kUsage, "--target {}: an accuracy must be above 0 and at most 1{}", target, fraction_hint(target));
}

std::string BenchPlan::accuracy_text() const {
  const auto is_alike = [&](const BenchCase& of) { return of.accuracy_set == cases.front().accuracy_set; };
  if (!std::ranges::all_of(cases, is_alike)) return "accuracy";
  return fmt::format("{} accuracy", to_string(cases.empty() ? EvaluationSet::kTest : cases.front().accuracy_set));
}

BenchPlan plan_bench(const BenchRequest& request) {
  if (request.target) check_target(*request.target);
  for (const std::string& setting : request.settings) check_path("--set", setting);
  BenchPlan plan;
  plan.seeds = parse_seeds(request.seeds);
  const auto combinations = combine(parse_variations(request.variations));
  std::vector<std::size_t> devices;
  for (const std::string& path : request.jobs) {
    for (const auto& combination : combinations) {
      BenchCase made = make_case(request, path, combination);
      const JobOptions job = load_case(made);
      if (!plan.cases.empty()) check_same_target(plan.target, job.training.target_accuracy);
      plan.target = job.training.target_accuracy;
      made.job = job.name;
      made.batch_size = job.training.batch_size;
      made.job_sha256 = sha256_of(job.resolved_text);
      if (job.data.has_validation()) made.accuracy_set = EvaluationSet::kValidation;
      name_case(made, plan.cases);
      plan.cases.push_back(std::move(made));
      devices.push_back(job.devices.size());
    }
    const std::vector<std::string> warnings = ParsedJob(read_job_file(path)).number_warnings();
    plan.warnings.insert(plan.warnings.end(), warnings.begin(), warnings.end());
  }
  const bool has_one_device = std::ranges::all_of(devices, [](std::size_t count) { return count == 1; });
  shorten_names(plan, has_one_device);
  return plan;
}

}  // namespace arbalest::jobs
