#include "options/learning_rate/restart_reader.h"

#include <iterator>
#include <string>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

bool has_end(const v1::LearningRate& rate) {
  return rate.has_polynomial() || rate.has_cosine() || rate.has_one_cycle();
}

// What is wrong with the epoch of a restart; "" if nothing is. `before`: the epoch of the restart before it, 0 if it is
// the first one.
std::string epoch_problem(const v1::LearningRate::Restart& restart, double before, double warm_up) {
  const double epoch = restart.epoch();
  if (!(epoch > 0.0)) return fmt::format("epoch must be above 0, not {}", epoch);
  if (!(epoch > before)) {
    return fmt::format("restarts must be in ascending order: epoch {} comes after epoch {}", epoch, before);
  }
  if (epoch > warm_up) return "";
  return fmt::format("the restart at epoch {} comes before the end of the warm-up, at epoch {}", epoch, warm_up);
}

}  // namespace

void fill_restarts(v1::LearningRate& rate, int max_epochs) {
  for (int i = 0; i < rate.restart_size(); ++i) {
    v1::LearningRate::Restart& restart = *rate.mutable_restart(i);
    const double end = i + 1 < rate.restart_size() ? rate.restart(i + 1).epoch() : max_epochs;
    if (!restart.has_epochs() && end > restart.epoch()) restart.set_epochs(end - restart.epoch());
  }
}

std::vector<scheduler::Restart> read_restarts(const v1::LearningRate& rate, double warm_up,
                                              dataflow::FieldIssues& issues) {
  std::vector<scheduler::Restart> restarts;
  for (const v1::LearningRate::Restart& restart : rate.restart()) {
    const std::string path = fmt::format("learning_rate.restart[{}]", restarts.size());
    if (!has_end(rate)) {
      issues.add(path,
                 "restart needs a schedule with an end: polynomial, cosine or one_cycle; with another schedule leave "
                 "it out");
      return {};
    }
    issues.add(path + ".epoch", epoch_problem(restart, restarts.empty() ? 0.0 : restarts.back().epoch, warm_up));
    if (!restart.has_epochs() && !issues.has(path + ".epoch") && std::ssize(restarts) + 1 == rate.restart_size()) {
      // One that is followed by another lacks its epochs only if they are not in order, which is reported there.
      issues.add(path + ".epoch", fmt::format("the restart at epoch {} must come before the end of the job "
                                              "(training.max_epochs), or set its epochs",
                                              restart.epoch()));
    }
    restarts.push_back({restart.epoch(), restart.epochs(), restart.factor()});
  }
  return restarts;
}

}  // namespace arbalest::jobs
