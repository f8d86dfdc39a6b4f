// Converts the lines of metrics.jsonl to TensorBoard's events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/tensorboard/curve.h"
#include "tensorboard/events.pb.h"

namespace arbalest::jobs {

struct CurveEvent {
  Curve curve = Curve::kRun;
  tensorboard::Event event;
};

// The lines must be passed in their order, because the times of later ones follow from the first. The step of an event
// is the number of mini-batches before it. A field that is missing or of another type makes no point: older versions of
// this program wrote fewer, and somebody may have edited the log.
class RunEvents {
 public:
  // `job_text`: the resolved job
  explicit RunEvents(std::string job_text) : job_text_(std::move(job_text)) {}

  // Returns the events of one line: `name` is its event, and `row` its other fields.
  std::vector<CurveEvent> of(const std::string& name, const nlohmann::ordered_json& row);

 private:
  std::vector<CurveEvent> start(const nlohmann::ordered_json& row);
  std::vector<CurveEvent> epoch(const nlohmann::ordered_json& row);
  std::vector<CurveEvent> resize(const nlohmann::ordered_json& row) const;
  std::vector<CurveEvent> rollback(const nlohmann::ordered_json& row) const;
  std::vector<CurveEvent> finish(const nlohmann::ordered_json& row);
  // Learns from a line with a time when the run began.
  void set_clock(const nlohmann::ordered_json& row);
  tensorboard::Event event_at(double elapsed_seconds, std::int64_t step) const;
  void add_learners(tensorboard::Event& event, const nlohmann::ordered_json& row) const;

  std::string job_text_;
  double begun_ = 0.0;  // the clock when elapsed_seconds was 0, in seconds since 1970
  std::size_t devices_ = 1;
  std::int64_t last_step_ = 0;               // the step of the last epoch
  std::optional<std::int64_t> tested_ = {};  // the step of the last test scores
};

}  // namespace arbalest::jobs
