#include "jobs/report/json.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "jobs/messages/text.h"
#include "jobs/report/class_report.h"

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

ordered_json finite_if_set(const char* field, const std::optional<double>& value) {
  return value ? finite(field, *value) : ordered_json();
}

// `set`: "test" or "validation".
ordered_json accuracies(const std::string& set, const std::optional<double>& accuracy,
                        const std::optional<double>& top5) {
  const std::string name = set + "_accuracy";
  const std::string top5_name = set + "_top5_accuracy";
  return {{name, finite_if_set(name.c_str(), accuracy)}, {top5_name, finite_if_set(top5_name.c_str(), top5)}};
}

// Scores of an epoch on one set; no fields if the set was not evaluated.
ordered_json epoch_scores(const std::string& set, const std::optional<double>& loss,
                          const std::optional<double>& accuracy, const std::optional<double>& top5,
                          const std::optional<double>& rmse) {
  ordered_json scores = ordered_json::object();
  if (loss) scores[set + "_loss"] = null_unless_finite(*loss);
  if (rmse) {
    scores[set + "_rmse"] = null_unless_finite(*rmse);
  } else if (accuracy) {
    scores.update(accuracies(set, accuracy, top5));
  }
  return scores;
}

ordered_json validation_scores(const RunSummary& summary) {
  const auto& loss = summary.validation_loss;
  const bool is_rmse = summary.metric == Metric::kRmse;
  const std::string name = is_rmse ? "validation_rmse" : "validation_accuracy";
  const auto& score = is_rmse ? summary.validation_rmse : summary.validation_accuracy;
  const auto& best = is_rmse ? summary.best_validation_rmse : summary.best_validation_accuracy;
  ordered_json scores = {{name, finite_if_set(name.c_str(), score)},
                         {"best_" + name, finite_if_set(name.c_str(), best)},
                         {"validation_loss", loss ? null_unless_finite(*loss) : ordered_json()}};
  if (!is_rmse) {
    scores["validation_top5_accuracy"] = finite_if_set("validation_top5_accuracy", summary.validation_top5_accuracy);
  }
  return scores;
}

ordered_json sparse_fields(const SparseProgress& sparse) {
  ordered_json fields = {{"objective", null_unless_finite(sparse.objective)}, {"non_zeros", sparse.non_zeros}};
  if (sparse.active_coordinates) fields["active_coordinates"] = *sparse.active_coordinates;
  if (sparse.kkt_violation) fields["kkt_violation"] = null_unless_finite(*sparse.kkt_violation);
  return fields;
}

// Number of pushes by staleness: {"0": 12, "3": 5}.
ordered_json staleness_of(const sma::StalenessCounts& counts) {
  ordered_json json = ordered_json::object();
  for (const auto& [staleness, pushes] : counts) json[std::to_string(staleness)] = pushes;
  return json;
}

ordered_json joined(std::initializer_list<ordered_json> parts) {
  ordered_json all = ordered_json::object();
  for (const ordered_json& part : parts) all.update(part);
  return all;
}

}  // namespace

const char* to_string(RunStatus status) {
  switch (status) {
    case RunStatus::kTargetReached:
      return "target_reached";
    case RunStatus::kCompleted:
      return "completed";
    case RunStatus::kStopped:
      return "stopped";
    case RunStatus::kDiverged:
      return "diverged";
    case RunStatus::kFailed:
      return "failed";
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
                      {"dropped_examples", start.dropped_examples},
                      {"elapsed_seconds", finite("elapsed_seconds", start.elapsed_seconds)},
                      {"warnings", start.warnings}};
  if (!start.scheme.empty()) row["scheme"] = start.scheme;
  if (!start.weights.empty()) row["weights"] = start.weights;
  return row;
}

ordered_json to_json(const EpochRow& row) {
  ordered_json losses = {
      {"epoch", row.epoch}, {"batch", row.batch}, {"train_loss", null_unless_finite(row.train_loss)}};
  if (row.train_accuracy) losses["train_accuracy"] = finite("train_accuracy", *row.train_accuracy);
  const ordered_json test =
      epoch_scores("test", row.test_loss, row.test_accuracy, row.test_top5_accuracy, row.test_rmse);
  const ordered_json validation = epoch_scores("validation", row.validation_loss, row.validation_accuracy,
                                               row.validation_top5_accuracy, row.validation_rmse);
  const ordered_json rest = {
      {"images_per_second", finite("images_per_second", row.images_per_second)},
      {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
      {"learning_rate", finite("learning_rate", row.learning_rate)},
      {"learners_per_device", per_device(row.learners_per_device)},
      {"replica_distance", null_unless_finite(row.replica_distance)},
      {"replica_spread", null_unless_finite(row.replica_spread)},
      {"training_seconds", finite("training_seconds", row.training_seconds)},
      {"evaluation_seconds", finite("evaluation_seconds", row.evaluation_seconds)},
      {"host_microseconds_per_step", finite("host_microseconds_per_step", row.host_microseconds_per_step)}};
  ordered_json optional = ordered_json::object();
  if (row.averaging_loss_gap) optional["averaging_loss_gap"] = null_unless_finite(*row.averaging_loss_gap);
  if (!row.staleness.empty()) optional["staleness"] = staleness_of(row.staleness);
  ordered_json all = joined({losses, test, validation, optional, rest});
  if (!row.sparse) return all;
  for (const char* field : {"replica_distance", "replica_spread", "host_microseconds_per_step"}) all.erase(field);
  all.update(sparse_fields(*row.sparse));
  return all;
}

ordered_json to_json(const ResizeRow& row) {
  ordered_json json = {{"batch", row.batch},
                       {"epoch", finite("epoch", row.epoch)},
                       {"elapsed_seconds", finite("elapsed_seconds", row.elapsed_seconds)},
                       {"from_learners_per_device", row.from},
                       {"learners_per_device", row.to},
                       {"reason", row.reason}};
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
  const ordered_json scores =
      summary.metric == Metric::kRmse
          ? ordered_json{{"test_rmse", finite_if_set("test_rmse", summary.test_rmse)},
                         {"best_test_rmse", finite_if_set("best_test_rmse", summary.best_test_rmse)}}
          : joined({accuracies("test", summary.test_accuracy, summary.test_top5_accuracy),
                    {{"best_test_accuracy", finite_if_set("best_test_accuracy", summary.best_test_accuracy)}}});
  const bool validates = summary.accuracy_set == EvaluationSet::kValidation;
  const ordered_json rest = {
      {"test_loss", summary.test_loss ? null_unless_finite(*summary.test_loss) : ordered_json()},
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
  if (validates) optional = validation_scores(summary);
  if (!summary.staleness.empty()) optional["staleness"] = staleness_of(summary.staleness);
  return joined(
      {outcome, scores, optional, rest, summary.sparse ? sparse_fields(*summary.sparse) : ordered_json::object()});
}

ordered_json to_json(const EvaluationResult& result) {
  const std::string set = to_string(result.set);
  ordered_json json = ordered_json::object();
  if (result.rmse) {
    json[set + "_rmse"] = finite("rmse", *result.rmse);
  } else {
    json[set + "_accuracy"] = finite("accuracy", result.accuracy);
    json[set + "_top5_accuracy"] = finite_if_set("top5_accuracy", result.top5_accuracy);
  }
  json[set + "_loss"] = null_unless_finite(result.loss);
  json["examples"] = result.examples;
  if (result.classes) json.update(to_json(*result.classes));
  return json;
}

}  // namespace arbalest::jobs
