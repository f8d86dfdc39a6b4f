// The lines in which people are told what happens to a run between two epochs.
#pragma once

#include <string>
#include <vector>

#include "train/context/run_observer.h"

namespace arbalest::jobs {

// "4", or "4 on 'cpu:0-1', 2 on 'cpu:2,3'".
std::string learners_text(const std::vector<std::string>& devices, const std::vector<int>& counts);

// ", in teams of 4"; "" if learners have streams of their own.
std::string teams_text(int team);

// Each of these is a whole line that begins with the epoch.
std::string resize_text(const std::vector<std::string>& devices, const ResizeRow& row);
std::string switch_text(const std::vector<std::string>& devices, const SwitchRow& row);
std::string rate_drop_text(const RateDropRow& row);
std::string rollback_text(const RollbackRow& row);
std::string checkpoint_text(const CheckpointRow& row);

}  // namespace arbalest::jobs
