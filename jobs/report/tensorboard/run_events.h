// Converts the lines of metrics.jsonl to TensorBoard's events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tensorboard/events.pb.h"

namespace arbalest::jobs {

// Each curve has a folder of its own below tensorboard/, so that TensorBoard shows curves with the same tag in one
// chart.
enum class Curve { kRun, kTraining, kTest, kValidation };
inline constexpr Curve kCurves[] = {Curve::kRun, Curve::kTraining, Curve::kTest, Curve::kValidation};

// Returns the name of the folder; "" for kRun, which holds the job and its hyper-parameters.
const char* folder_of(Curve curve);

struct CurveEvent {
  Curve curve = Curve::kRun;
  tensorboard::Event event;
};

// The lines must be passed in their order, because the times of later ones follow from the first. The step of an event
// is the number of mini-batches before it.
class RunEvents {
 public:
  // `job_text`: the resolved job
  explicit RunEvents(std::string job_text) : job_text_(std::move(job_text)) {}

  // Returns the events of one line: `name` is its event, and `row` its other fields.
  std::vector<CurveEvent> of(const std::string& name, const nlohmann::ordered_json& row);

 private:
  std::vector<CurveEvent> start(const nlohmann::ordered_json& row);
  std::vector<CurveEvent> epoch(const nlohmann::ordered_json& row);
  std::vector<CurveEvent> finish(const nlohmann::ordered_json& row);
  tensorboard::Event event_at(double elapsed_seconds, std::int64_t step) const;
  double learners_of(const nlohmann::ordered_json& counts) const;

  std::string job_text_;
  double begun_ = 0.0;  // the clock when elapsed_seconds was 0, in seconds since 1970
  std::size_t devices_ = 1;
  std::optional<std::int64_t> tested_ = {};  // the step of the last test scores
};

}  // namespace arbalest::jobs
