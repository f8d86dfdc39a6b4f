#include "report/json.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "messages/text.h"
#include "report/class_report.h"
#include "sma/staleness_summary.h"

namespace arbalest::jobs {

using nlohmann::ordered_json;

namespace {

// The JSON library would silently write NaN as null.
ordered_json finite(const char* field, double value) {
  if (!std::isfinite(value)) {
    engine::fail(engine::ErrorKind::kInternal, "internal error: '{}' is {}; please report this", field,
                 unsigned_nan(value));
  }
  return value;
}

ordered_json null_unless_finite(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json null_unless_finite(const std::optional<double>& value) {
  return value ? null_unless_finite(*value) : ordered_json();
}

ordered_json finite_if_set(const char* field, const std::optional<double>& value) {
  return value ? finite(field, *value) : ordered_json();
}

// `set`: "train", "test" or "validation".
void add_scores(ordered_json& json, const std::string& set, const Scores& scores) {
  for (const Score& score : scores) json[set + "_" + score.name] = null_unless_finite(score.value);
}

// All metrics of a set, and the best value of the one by which the model is judged; null if they are not known.
ordered_json final_scores(const RunSummary& summary, EvaluationSet set) {
  const bool is_test = set == EvaluationSet::kTest;
  const Scores& scores = is_test ? summary.test : summary.validation;
  ordered_json json = ordered_json::object();
  for (const dataflow::Metric& metric : summary.metrics) {
    const std::string name = fmt::format("{}_{}", to_string(set), metric.name);
    json[name] = null_unless_finite(scores.value(metric.name));
    const std::optional<double>& best = is_test ? summary.best_test : summary.best_validation;
    if (metric.is_score) json["best_" + name] = null_unless_finite(best);
  }
  return json;
}

ordered_json sparse_fields(const SparseProgress& sparse) {
  ordered_json fields = {{"objective", null_unless_finite(sparse.objective)}, {"non_zeros", sparse.non_zeros}};
  if (sparse.active_coordinates) fields["active_coordinates"] = *sparse.active_coordinates;
  if (sparse.kkt_violation) fields["kkt_violation"] = null_unless_finite(*sparse.kkt_violation);
  if (sparse.step) fields["step"] = finite("step", *sparse.step);
  return fields;
}

std::vector<std::string> names_of(const dataflow::Metrics& metrics) {
  std::vector<std::string> names;
  for (const dataflow::Metric& metric : metrics) names.push_back(metric.name);
  return names;
}

void erase(ordered_json& json, std::initializer_list<const char*> fields) {
  for (const char* field : fields) json.erase(field);
}

// The number of pushes by staleness, {"staleness": {"0": 12, "3": 5}}, their mean and the largest; nothing for none.
ordered_json staleness_of(const sma::StalenessCounts& counts) {
  if (counts.empty()) return ordered_json::object();
  ordered_json histogram = ordered_json::object();
  for (const auto& [staleness, pushes] : counts) histogram[std::to_string(staleness)] = pushes;
  const sma::StalenessSummary summary = sma::summary_of(counts);
  return {{"staleness", histogram}, {"staleness_mean", summary.mean}, {"staleness_max", summary.largest}};
}

ordered_json joined(std::initializer_list<ordered_json> parts) {
  ordered_json all = ordered_json::object();
  for (const ordered_json& part : parts) all.update(part);
  return all;
}

}  // namespace

const char* to_string(RunStatus status) {
  switch (status) {
    case RunStatus::kTargetReached: return "target_reached";
    case RunStatus::kCompleted: return "completed";
    case RunStatus::kStopped: return "stopped";
    case RunStatus::kDiverged: return "diverged";
    case RunStatus::kFailed: return "failed";
  }
  engine::fail(engine::ErrorKind::kInternal, "internal error: unknown run status {}", static_cast<int>(status));
}

ordered_json per_device(const std::vector<int>& counts) {
  const bool equal = !counts.empty() && std::ranges::all_of(counts, [&](int count) { return count == counts.front(); });
  return equal ? ordered_json(counts.front()) : ordered_json(counts);
}

ordered_json to_json(const RunStart& start) {
  ordered_json row = {{"job", start.job},
                      {"model", start.model},
                      {"data", start.data},
                      {"data_root", start.data_root},
                      {"devices", start.devices},
                      {"learners_per_device", per_device(start.learners_per_device)},
                      {"batch_size", start.batch_size},
                      {"precision", engine::to_string(start.precision)},
                      {"max_epochs", start.max_epochs},
                      {"target_accuracy", finite_if_set("target_accuracy", start.target_accuracy)},
                      {"accuracy_set", to_string(start.accuracy_set)},
                      {"metrics", names_of(start.metrics)},
                      {"dropped_examples", start.dropped_examples},
                      {"elapsed_seconds", finite("elapsed_seconds", start.elapsed_seconds)},
                      {"warnings", start.warnings}};
  if (!start.scheme.empty()) {
    erase(row, {"batch_size", "precision", "dropped_examples"});  // there are no mini-batches
    row["scheme"] = start.scheme;
  }
  if (start.largest_team > 1) row["team"] = start.largest_team;
  if (!start.weights.empty()) row["weights"] = start.weights;
  if (!start.precision_choice.empty()) row["precision_choice"] = start.precision_choice;
  return row;
}

ordered_json to_json(const EpochRow& row) {
  ordered_json scores = {{"epoch", row.epoch}, {"batch", row.batch}};
  add_scores(scores, "train", row.train);
  add_scores(scores, "test", row.test);
  add_scores(scores, "validation", row.validation);
  ordered_json training = {{"images_per_second", finite("images_per_second", row.images_per_second)},
                           {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
                           {"learning_rate", finite("learning_rate", row.learning_rate)},
                           {"learners_per_device", per_device(row.learners_per_device)}};
  if (row.largest_team > 1) training["team"] = row.largest_team;
  if (row.replica_distance) training["replica_distance"] = null_unless_finite(*row.replica_distance);
  if (row.replica_spread) training["replica_spread"] = null_unless_finite(*row.replica_spread);
  const ordered_json rest = {
      {"training_seconds", finite("training_seconds", row.training_seconds)},
      {"evaluation_seconds", finite("evaluation_seconds", row.evaluation_seconds)},
      {"host_microseconds_per_step", finite("host_microseconds_per_step", row.host_microseconds_per_step)}};
  ordered_json optional = ordered_json::object();
  if (row.averaging_loss_gap) optional["averaging_loss_gap"] = null_unless_finite(*row.averaging_loss_gap);
  optional.update(staleness_of(row.staleness));
  ordered_json all = joined({scores, optional, training, rest});
  if (!row.sparse) return all;
  erase(all, {"batch", "host_microseconds_per_step"});
  if (row.sparse->step) all.erase("learning_rate");
  all.update(sparse_fields(*row.sparse));
  return all;
}

ordered_json to_json(const ResizeRow& row) {
  ordered_json json = {{"batch", row.batch},
                       {"epoch", finite("epoch", row.epoch)},
                       {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
                       {"from_learners_per_device", row.from},
                       {"learners_per_device", row.to}};
  if (row.to_team > 0) json.update({{"from_team", row.from_team}, {"team", row.to_team}});
  json["reason"] = row.reason;
  if (row.evidence) {
    const autotuner::Evidence& evidence = *row.evidence;
    json["evidence"] = {{"images_per_second", finite("images_per_second", evidence.rate)},
                        {"windows", evidence.windows},
                        {"noise", finite("noise", evidence.noise)},
                        {"best_learners", evidence.best_learners},
                        {"best_images_per_second", finite("best_images_per_second", evidence.best_rate)},
                        {"probes", evidence.probes},
                        {"probe_limit", evidence.probe_limit},
                        {"measured_windows", evidence.measured_windows},
                        {"disturbed_windows", evidence.disturbed_windows},
                        {"lost", finite_if_set("lost", evidence.lost)},
                        {"noise_scale", finite_if_set("noise_scale", evidence.noise_scale)},
                        {"efficiency", finite_if_set("efficiency", evidence.efficiency)},
                        {"goodput", finite_if_set("goodput", evidence.goodput())},
                        {"best_goodput", finite_if_set("best_goodput", evidence.best_goodput())}};
  }
  return json;
}

ordered_json to_json(const SwitchRow& row) {
  return {{"batch", row.batch},
          {"epoch", finite("epoch", row.epoch)},
          {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
          {"from", row.from},
          {"to", row.to},
          {"learners_per_device", row.learners_per_device}};
}

ordered_json to_json(const RateDropRow& row) {
  return {{"batch", row.batch},
          {"epoch", finite("epoch", row.epoch)},
          {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
          {"factor", finite("factor", row.factor)},
          {"learning_rate", finite("learning_rate", row.learning_rate)},
          {"reason", row.reason}};
}

ordered_json to_json(const RollbackRow& row) {
  return {{"batch", row.batch},
          {"epoch", finite("epoch", row.epoch)},
          {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
          {"loss", row.loss ? null_unless_finite(*row.loss) : ordered_json()},
          {"reason", row.reason},
          {"checkpoint", row.checkpoint},
          {"to_batch", row.to_batch},
          {"to_epoch", finite("to_epoch", row.to_epoch)},
          {"factor", finite("factor", row.factor)},
          {"rollbacks", row.rollbacks},
          {"learners_per_device", row.learners_per_device}};
}

ordered_json to_json(const CheckpointRow& row) {
  return {{"batch", row.batch},
          {"epoch", finite("epoch", row.epoch)},
          {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
          {"checkpoint", row.path}};
}

ordered_json to_json(const ResumeRow& row) {
  return {{"batch", row.batch},
          {"epoch", finite("epoch", row.epoch)},
          {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
          {"checkpoint", row.path},
          {"from_learners_per_device", row.from},
          {"learners_per_device", row.to}};
}

ordered_json to_json(const RunSummary& summary) {
  const ordered_json outcome = {
      {"job", summary.job}, {"status", to_string(summary.status)}, {"message", summary.message}};
  const ordered_json scores = final_scores(summary, EvaluationSet::kTest);
  const bool validates = summary.accuracy_set == EvaluationSet::kValidation;
  const ordered_json rest = {
      {"epochs", summary.epochs},
      {"mini_batches", summary.mini_batches},
      {"examples", summary.examples},
      {"skipped_examples", summary.skipped_examples},
      {"train_seconds", finite("train_seconds", summary.train_seconds)},
      {"time_to_accuracy_seconds", finite_if_set("time_to_accuracy_seconds", summary.time_to_accuracy_seconds)},
      {"accuracy_set", to_string(summary.accuracy_set)},
      {"images_per_second", finite("images_per_second", summary.images_per_second)},
      {"learners", summary.learners},
      {"learners_per_device", per_device(summary.learners_per_device)},
      {"devices", summary.devices},
      {"precision", engine::to_string(summary.precision)},
      {"seed", summary.seed},
      {"model_sha256", summary.model_sha256}};
  ordered_json optional = ordered_json::object();
  if (validates) optional = final_scores(summary, EvaluationSet::kValidation);
  optional.update(staleness_of(summary.staleness));
  if (summary.largest_team > 1) optional["team"] = summary.largest_team;
  ordered_json all = joined(
      {outcome, scores, optional, rest, summary.sparse ? sparse_fields(*summary.sparse) : ordered_json::object()});
  if (const std::optional<BestModel>& best = summary.best_model) {
    all["best_model"] = {{"mini_batches", best->batches}, {"sha256", best->sha256}};
  }
  if (summary.is_sparse) erase(all, {"mini_batches", "skipped_examples", "precision"});
  return all;
}

ordered_json to_json(const EvaluationResult& result) {
  ordered_json json = ordered_json::object();
  const std::string set = to_string(result.set);
  add_scores(json, set, result.scores);
  const ordered_json loss = json.at(set + "_loss");  // it follows the scores
  json.erase(set + "_loss");
  json[set + "_loss"] = loss;
  json["examples"] = result.examples;
  if (result.classes) json.update(to_json(*result.classes, result.class_names));
  return json;
}

}  // namespace arbalest::jobs
