#include "train/learners/learner_preparation.h"

#include <chrono>
#include <system_error>

namespace arbalest::jobs {

void LearnerPreparation::start(const std::vector<int>& learners_per_device, int team) {
  wait();
  try {
    work_ = std::async(std::launch::async,
                       [this, learners_per_device, team] { session_.prepare(learners_per_device, team); });
  } catch (const std::system_error&) {  // no thread is left: treated as a failed preparation
    std::promise<void> failed;
    failed.set_exception(std::current_exception());
    work_ = failed.get_future();
  }
}

void LearnerPreparation::release() {
  wait();
  try {
    work_ = std::async(std::launch::async, [this] { session_.release_idle(); });
  } catch (const std::system_error&) {  // no thread is left
    session_.release_idle();
  }
}

bool LearnerPreparation::is_done() const {
  return !work_.valid() || work_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void LearnerPreparation::wait() const {
  if (work_.valid()) work_.wait();
}

void LearnerPreparation::take() {
  if (work_.valid()) work_.get();
}

}  // namespace arbalest::jobs
