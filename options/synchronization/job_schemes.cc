#include "options/synchronization/job_schemes.h"

#include <algorithm>

namespace arbalest::jobs {

using sma::Options;
using sma::Scheme;

std::vector<Options> schemes_of(const JobOptions& options) {
  std::vector<Options> schemes = {options.synchronization};
  for (const SynchronizationSwitch& each : options.switches) schemes.push_back(each.to);
  return schemes;
}

const Options& present_scheme(const JobOptions& options, std::size_t switches_done) {
  return switches_done == 0 ? options.synchronization : options.switches[switches_done - 1].to;
}

bool has_rounds(const Options& scheme, int learners) {
  const sma::SynchronizationMode mode = scheme.mode(learners);
  return mode != sma::SynchronizationMode::kServer && mode != sma::SynchronizationMode::kShared;
}

int longest_iteration(const JobOptions& options) { return sma::longest_iteration(schemes_of(options)); }

bool sums_gradients(const JobOptions& options) {
  return std::ranges::any_of(schemes_of(options), [](const Options& scheme) {
    return scheme.scheme == Scheme::kAsyncSgd && scheme.period > 1;
  });
}

std::string path_of(Scheme scheme, const JobOptions& options) {
  if (options.synchronization.scheme == scheme) return options.synchronization_path;
  const auto found = std::ranges::find_if(options.switches,
                                          [&](const SynchronizationSwitch& each) { return each.to.scheme == scheme; });
  return found == options.switches.end() ? "" : found->path;
}

bool measures_gradients(const JobOptions& options) {
  return options.tuned && options.tuned->objective == TuningObjective::kGoodput;
}

std::int64_t gradient_part_bytes(const JobOptions& options) {
  std::int64_t bytes = 0;
  for (const Options& scheme : schemes_of(options)) bytes = std::max(bytes, scheme.bucket_bytes);
  return bytes;
}

}  // namespace arbalest::jobs
