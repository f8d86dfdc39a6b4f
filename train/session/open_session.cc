// Opens a session with as many learners as fit.
#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "messages/failure.h"
#include "messages/text.h"
#include "options/loading/load_job.h"
#include "train/session/memory_estimate.h"
#include "train/session/session.h"

namespace arbalest::jobs {

namespace {

// Halves the bound of a tuned job, for which there was not enough memory. Returns false if the bound cannot be lowered.
bool lower_bound(JobOptions& job, const std::exception& error) {
  if (!job.tuned || job.tuned->max == job.tuned->min) return false;
  const int before = job.tuned->max;
  job.tuned->max = std::max(job.tuned->min, before / 2);
  job.warnings.push_back(fmt::format("learners.per_device.auto: at most {} on each device instead of {}: {}",
                                     counted(job.tuned->max, "learner"), before, as_error(error).what()));
  return true;
}

}  // namespace

std::unique_ptr<Session> open_session(JobOptions& job, const std::string& data_root,
                                      const engine::DeviceOptions& device_options, Session::Input input,
                                      engine::process::World* world) {
  for (;;) {
    const int most = std::ranges::max(job.learners_per_device);
    try {
      auto session = std::make_unique<Session>(job, data_root, device_options, input, world);
      job.warnings.insert(job.warnings.end(), session->warnings().begin(), session->warnings().end());
      return session;
    } catch (const std::exception& error) {
      if (!is_shortage(error)) throw;
      if (world != nullptr && world->size() > 1) throw;  // all of them would have to try again
      const auto* estimate = dynamic_cast<const DoesNotFit*>(&error);
      if (estimate == nullptr && lower_bound(job, error)) continue;
      if (job.learners_are_given) throw;
      // An allocation failed although the estimate fits: half as many learners may work.
      const int fewer = estimate != nullptr ? estimate->learners_that_fit() : most / 2;
      if (fewer == 0) throw;
      job = with_learners(
          job, fewer,
          fmt::format("{} on each device instead of {}: {}", counted(fewer, "learner"), most, as_error(error).what()));
    }
  }
}

}  // namespace arbalest::jobs
