// JSON rows of metrics.jsonl, summary.json and the output of `evaluate`. The names are an interface for other programs
// (design section 8).
#pragma once

#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "jobs/run/evaluation.h"
#include "jobs/run/run_observer.h"

namespace arbalest::jobs {

template <typename T>
nlohmann::ordered_json null_unless_set(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// One number if all devices have the same count, else the list.
nlohmann::ordered_json per_device(const std::vector<int>& counts);

// Fields are in the order of the file. A loss or distance that is not finite becomes null, which marks a diverged run;
// any other number that is not finite throws ErrorKind::kInternal.
nlohmann::ordered_json to_json(const RunStart& start);
nlohmann::ordered_json to_json(const EpochRow& row);
nlohmann::ordered_json to_json(const ResizeRow& row);
nlohmann::ordered_json to_json(const SwitchRow& row);
nlohmann::ordered_json to_json(const RunSummary& summary);
nlohmann::ordered_json to_json(const EvaluationResult& result);

// "target_reached", "completed", "stopped", "diverged", "failed".
const char* to_string(RunStatus status);

}  // namespace arbalest::jobs
