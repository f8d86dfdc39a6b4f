// Converts the events of a run to JSON: lines of metrics.jsonl, the object in summary.json, and the output of
// `arbalest evaluate`. Other programs read these field names; do not rename them.
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/context/run_observer.h"
#include "train/train.h"

namespace arbalest::jobs {

template <typename T>
nlohmann::ordered_json null_unless_set(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// Returns one number if all devices have the same count, and otherwise the list of counts.
nlohmann::ordered_json per_device(const std::vector<int>& counts);

// Fields keep the order written in json.cc. A NaN or infinite loss, loss gap, replica distance, replica spread or RMSE
// of an epoch becomes null: training has diverged. Any other number that is not finite throws ErrorKind::kInternal.
nlohmann::ordered_json to_json(const RunStart& start);
nlohmann::ordered_json to_json(const EpochRow& row);
nlohmann::ordered_json to_json(const ResizeRow& row);
nlohmann::ordered_json to_json(const SwitchRow& row);
nlohmann::ordered_json to_json(const RateDropRow& row);
nlohmann::ordered_json to_json(const RollbackRow& row);
nlohmann::ordered_json to_json(const CheckpointRow& row);
nlohmann::ordered_json to_json(const ResumeRow& row);
nlohmann::ordered_json to_json(const RunSummary& summary);  // the `finish` line and summary.json
nlohmann::ordered_json to_json(const EvaluationResult& result);

// "target_reached", "completed", "stopped", "diverged", "failed".
const char* to_string(RunStatus status);

}  // namespace arbalest::jobs
