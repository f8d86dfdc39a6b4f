#include "report/run_event_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "messages/text.h"

namespace arbalest::jobs {

std::string learners_text(const std::vector<std::string>& devices, const std::vector<int>& counts) {
  if (counts.size() == 1) return std::to_string(counts.front());
  std::vector<std::string> parts;
  for (std::size_t device = 0; device < std::min(devices.size(), counts.size()); ++device) {
    parts.push_back(fmt::format("{} on '{}'", counts[device], devices[device]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string teams_text(int team) { return team > 1 ? fmt::format(", in teams of {}", team) : ""; }

std::string resize_text(const std::vector<std::string>& devices, const ResizeRow& row) {
  if (!row.changes()) return fmt::format("epoch {:.2f}: {}\n", row.epoch, row.reason);
  if (row.to == row.from)
    return fmt::format("epoch {:.2f}: teams of {} instead of {}: {}\n", row.epoch, row.to_team, row.from_team,
                       row.reason);
  return fmt::format("epoch {:.2f}: learners: {} instead of {}{}: {}\n", row.epoch, learners_text(devices, row.to),
                     learners_text(devices, row.from), teams_text(row.to_team), row.reason);
}

std::string switch_text(const std::vector<std::string>& devices, const SwitchRow& row) {
  const std::vector<int>& learners = row.learners_per_device;
  const std::string text =
      learners.size() == 1 ? counted(learners.front(), "learner") : "learners: " + learners_text(devices, learners);
  return fmt::format("epoch {:.2f}: {} instead of {}, {}\n", row.epoch, row.to, row.from, text);
}

std::string rate_drop_text(const RateDropRow& row) {
  return fmt::format("epoch {:.2f}: the learning rate drops to {:.4g}: {}\n", row.epoch, row.learning_rate, row.reason);
}

std::string rollback_text(const RollbackRow& row) {
  return fmt::format(
      "epoch {:.2f}: the run goes back to epoch {:.2f} ({}) and on with {:g} times the learning rate "
      "(roll-back {} of {})\n",
      row.epoch, row.to_epoch, row.checkpoint, row.factor, row.rollbacks, row.most_rollbacks);
}

std::string checkpoint_text(const CheckpointRow& row) {
  return fmt::format("checkpoint of epoch {:.2f}: {}\n", row.epoch, row.path);
}

}  // namespace arbalest::jobs
