#include "report/tensorboard/run_events.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "report/tensorboard/hyper_parameters.h"

namespace arbalest::jobs {

using nlohmann::ordered_json;
using tensorboard::Event;
using tensorboard::HParamInfo;
using tensorboard::HParamsPluginData;
using tensorboard::Summary;

namespace {

constexpr const char* kTrainingScalars[] = {
    "learning_rate",  "images_per_second", "team",      "replica_distance", "replica_spread", "averaging_loss_gap",
    "staleness_mean", "staleness_max",     "objective", "non_zeros",        "kkt_violation",  "step"};
constexpr const char* kLearners = "learners";

// A number of the line; none if the field is missing or null.
std::optional<double> number_in(const ordered_json& row, const char* field) {
  const auto value = row.find(field);
  if (value == row.end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::string text_in(const ordered_json& row, const char* field) {
  const auto value = row.find(field);
  return value != row.end() && value->is_string() ? value->get<std::string>() : "";
}

double elapsed_in(const ordered_json& row) { return number_in(row, "elapsed_seconds").value_or(0.0); }

bool is_list_of_numbers(const ordered_json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const ordered_json& item) { return item.is_number(); });
}

std::int64_t step_in(const ordered_json& row, const char* field) {
  return static_cast<std::int64_t>(number_in(row, field).value_or(0.0));
}

void add_scalar(Event& event, const char* tag, double value) {
  Summary::Value& scalar = *event.mutable_summary()->add_value();
  scalar.set_tag(tag);
  scalar.set_simple_value(static_cast<float>(value));
}

// Returns the prefix of the names of a curve's metrics in the line of an epoch.
std::string_view prefix_of(Curve curve) {
  return curve == Curve::kTraining ? "train_" : curve == Curve::kTest ? "test_" : "validation_";
}

// Adds the scores of one curve that the line has: every number whose name begins with the curve's prefix.
void add_scores(Event& event, const ordered_json& row, Curve curve) {
  for (const auto& [name, value] : row.items()) {
    if (!name.starts_with(prefix_of(curve)) || !value.is_number()) continue;
    add_scalar(event, name.c_str() + prefix_of(curve).size(), value.get<double>());
  }
}

void add_training_scalars(Event& event, const ordered_json& row) {
  for (const char* name : kTrainingScalars) {
    if (const std::optional<double> value = number_in(row, name)) add_scalar(event, name, *value);
  }
}

// The names of the metrics in the line of the start; lines of older versions have none.
std::vector<std::string> metrics_in(const ordered_json& row) {
  const auto names = row.find("metrics");
  if (names == row.end() || !names->is_array() ||
      !std::ranges::all_of(*names, [](const ordered_json& name) { return name.is_string(); })) {
    return {"accuracy", "rmse", "loss"};
  }
  return names->get<std::vector<std::string>>();
}

// The plugin reads its data from the metadata, and ignores the value.
void add_hyper_parameter_data(Event& event, const char* tag, const HParamsPluginData& data) {
  Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("hparams");
  value.mutable_metadata()->mutable_plugin_data()->set_content(data.SerializeAsString());
  value.mutable_tensor()->set_dtype(tensorboard::Tensor::DT_FLOAT);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(0);
}

HParamInfo::DataType type_of(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kStringValue: return HParamInfo::DATA_TYPE_STRING;
    case google::protobuf::Value::kBoolValue: return HParamInfo::DATA_TYPE_BOOL;
    default: return HParamInfo::DATA_TYPE_FLOAT64;
  }
}

void add_metric(tensorboard::Experiment& experiment, Curve curve, const std::string& tag) {
  tensorboard::MetricInfo::Name& name = *experiment.add_metric_infos()->mutable_name();
  name.set_group(folder_of(curve));
  name.set_tag(tag);
}

// Text is shown as Markdown.
void add_text(Event& event, const char* tag, const std::string& text) {
  Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_tensor()->set_dtype(tensorboard::Tensor::DT_STRING);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
  value.mutable_tensor()->add_string_val(text);
}

}  // namespace

Event RunEvents::event_at(double elapsed_seconds, std::int64_t step) const {
  Event event;
  event.set_wall_time(begun_ + elapsed_seconds);
  event.set_step(step);
  return event;
}

// The line has one number for all devices if their numbers are equal.
void RunEvents::add_learners(Event& event, const ordered_json& row) const {
  const auto counts = row.find("learners_per_device");
  if (counts == row.end()) return;
  if (counts->is_number()) return add_scalar(event, kLearners, counts->get<double>() * static_cast<double>(devices_));
  if (!is_list_of_numbers(*counts)) return;
  double sum = 0.0;
  for (const ordered_json& count : *counts) sum += count.get<double>();
  add_scalar(event, kLearners, sum);
}

std::vector<CurveEvent> RunEvents::of(const std::string& name, const ordered_json& row) {
  if (name == "start") return start(row);
  if (name == "epoch") return epoch(row);
  if (name == "resize") return resize(row);
  if (name == "rollback") return rollback(row);
  if (name == "finish") return finish(row);
  if (name == "resume") {
    set_clock(row);
    // A run may go on on other devices.
    if (const auto counts = row.find("learners_per_device"); counts != row.end() && is_list_of_numbers(*counts)) {
      devices_ = counts->size();
    }
  }
  return {};
}

void RunEvents::set_clock(const ordered_json& row) {
  if (const std::optional<double> time = number_in(row, "time")) begun_ = *time - elapsed_in(row);
}

std::vector<CurveEvent> RunEvents::resize(const ordered_json& row) const {
  Event event = event_at(elapsed_in(row), step_in(row, "batch"));
  add_learners(event, row);
  if (!event.has_summary()) return {};
  return {{Curve::kTraining, event}};
}

// TensorBoard forgets the steps that follow once more, from this step on. A point at the checkpoint itself stays.
std::vector<CurveEvent> RunEvents::rollback(const ordered_json& row) const {
  std::vector<CurveEvent> events;
  for (const Curve curve : {Curve::kTraining, Curve::kTest, Curve::kValidation}) {
    Event event = event_at(elapsed_in(row), step_in(row, "to_batch") + 1);
    event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    events.push_back({curve, event});
  }
  return events;
}

std::vector<CurveEvent> RunEvents::start(const ordered_json& row) {
  set_clock(row);
  if (const auto devices = row.find("devices"); devices != row.end() && devices->is_array()) devices_ = devices->size();
  const auto parameters = hyper_parameters(job_text_);
  const bool validates = text_in(row, "accuracy_set") == "validation";
  HParamsPluginData experiment;
  for (const auto& [path, value] : parameters) {
    HParamInfo& info = *experiment.mutable_experiment()->add_hparam_infos();
    info.set_name(path);
    info.set_type(type_of(value));
  }
  for (const std::string& tag : metrics_in(row)) {
    add_metric(*experiment.mutable_experiment(), validates ? Curve::kValidation : Curve::kTest, tag);
  }
  HParamsPluginData session;
  session.mutable_session_start_info()->set_start_time_secs(begun_);
  for (const auto& [path, value] : parameters) (*session.mutable_session_start_info()->mutable_hparams())[path] = value;

  Event event = event_at(0.0, 0);
  add_hyper_parameter_data(event, "_hparams_/experiment", experiment);
  add_hyper_parameter_data(event, "_hparams_/session_start_info", session);
  add_text(event, "job", fmt::format("```\n{}```\n", job_text_));
  return {{Curve::kRun, event}};
}

std::vector<CurveEvent> RunEvents::epoch(const ordered_json& row) {
  std::vector<CurveEvent> events;
  const bool is_sparse = row.contains("objective");           // without mini-batches, epochs are steps
  if (!is_sparse && !number_in(row, "batch")) return events;  // earlier versions wrote none
  const std::int64_t step = step_in(row, is_sparse ? "epoch" : "batch");
  for (const Curve curve : {Curve::kTraining, Curve::kTest, Curve::kValidation}) {
    Event event = event_at(elapsed_in(row), step);
    add_scores(event, row, curve);
    if (curve == Curve::kTraining) add_training_scalars(event, row);
    if (curve == Curve::kTraining) add_learners(event, row);
    if (event.has_summary()) events.push_back({curve, event});
  }
  last_step_ = step;
  if (number_in(row, "test_loss")) tested_ = step;
  return events;
}

// The model at the end has test scores of its own if it was not evaluated at the end of an epoch.
std::vector<CurveEvent> RunEvents::finish(const ordered_json& row) {
  std::vector<CurveEvent> events;
  const double elapsed = number_in(row, "train_seconds").value_or(0.0);
  const std::int64_t mini_batches = step_in(row, "mini_batches");
  const std::int64_t step = mini_batches > 0 ? mini_batches : last_step_;
  if (tested_ != step) {
    Event event = event_at(elapsed, step);
    add_scores(event, row, Curve::kTest);
    if (event.has_summary()) events.push_back({Curve::kTest, event});
  }
  HParamsPluginData end;
  const std::string status = text_in(row, "status");
  const bool is_failure = status == "failed" || status == "diverged";
  end.mutable_session_end_info()->set_status(is_failure ? tensorboard::SessionEndInfo::STATUS_FAILURE
                                                        : tensorboard::SessionEndInfo::STATUS_SUCCESS);
  Event event = event_at(elapsed, step);
  end.mutable_session_end_info()->set_end_time_secs(event.wall_time());
  add_hyper_parameter_data(event, "_hparams_/session_end_info", end);
  events.push_back({Curve::kRun, event});
  return events;
}

}  // namespace arbalest::jobs
