#include "options/readers/epoch_defaults.h"

namespace arbalest::jobs {

namespace {

bool names_schedule_epochs(const v1::LearningRate& rate) {
  return rate.polynomial().has_epochs() || rate.cosine().has_epochs() || rate.one_cycle().has_epochs();
}

}  // namespace

std::string path_of_schedule_epochs(const v1::LearningRate& rate) {
  if (rate.has_polynomial()) return "learning_rate.polynomial.epochs";
  if (rate.has_cosine()) return "learning_rate.cosine.epochs";
  return rate.has_one_cycle() ? "learning_rate.one_cycle.epochs" : "";
}

std::vector<std::string> fields_following_max_epochs(const v1::Job& written) {
  std::vector<std::string> paths;
  const v1::LearningRate& rate = written.learning_rate();
  const std::string schedule = path_of_schedule_epochs(rate);
  if (!schedule.empty() && !names_schedule_epochs(rate)) paths.push_back(schedule);
  if (!schedule.empty() && rate.restart().empty()) paths.emplace_back(kRestartPath);
  const v1::Learners::PerDevice& learners = written.learners().per_device();
  if (learners.has_growth() && !learners.growth().has_epochs()) paths.emplace_back(kGrowthEpochsPath);
  const v1::Synchronization& scheme = written.synchronization();
  if (scheme.has_async_sgd() && !scheme.async_sgd().has_warm_start_epochs()) paths.emplace_back(kWarmStartEpochsPath);
  return paths;
}

}  // namespace arbalest::jobs
