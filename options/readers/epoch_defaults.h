// The fields of a job whose defaults follow from training.max_epochs.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/job.pb.h"

namespace arbalest::jobs {

// The path of the length of the job's schedule of the learning rate, such as "learning_rate.cosine.epochs"; "" for a
// schedule without an end.
std::string path_of_schedule_epochs(const v1::LearningRate& rate);

inline constexpr const char* kRestartPath = "learning_rate.restart";
inline constexpr const char* kGrowthEpochsPath = "learners.per_device.growth.epochs";
inline constexpr const char* kWarmStartEpochsPath = "synchronization.async_sgd.warm_start_epochs";

// Returns the paths of those fields that `written`, a job without defaults, leaves out.
std::vector<std::string> fields_following_max_epochs(const v1::Job& written);

}  // namespace arbalest::jobs
