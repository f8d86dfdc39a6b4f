#include "train/live/learned_nothing.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

constexpr double kMostOfUntrained = 1.1;
constexpr double kMostOfShortRun = 10.0;
constexpr std::int64_t kExamples = 256;  // enough to know the mean loss of an untrained model within a few percent
constexpr std::int64_t kFewestUpdates = 20;

}  // namespace

std::optional<double> untrained_loss(const JobOptions& job, Session& session) {
  const std::int64_t examples_of_round = job.training.batch_size * session.scheduler().learners();
  const std::int64_t rounds_of_epoch = session.training_order().batches_per_epoch() / session.scheduler().learners();
  const std::int64_t enough = (kExamples + examples_of_round - 1) / examples_of_round;
  const std::int64_t rounds = std::clamp<std::int64_t>(rounds_of_epoch, 1, enough);
  return session.scheduler().training_loss(session.training_ring(), static_cast<int>(rounds));
}

std::string learned_nothing(std::optional<double> untrained, std::optional<double> last_epoch, std::int64_t updates) {
  const double most = updates < kFewestUpdates ? kMostOfShortRun : kMostOfUntrained;
  if (!untrained || !last_epoch || !(*last_epoch > most * *untrained)) return "";
  return fmt::format(
      "the mean training loss of the last epoch is {:.4g}, which is more than {:g} times that of the untrained model, "
      "{:.4g}",
      *last_epoch, most, *untrained);
}

}  // namespace arbalest::jobs
