#include "report/prometheus/prometheus_file.h"

#include <fstream>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "report/json.h"
#include "report/prometheus/prometheus_text.h"
#include "saved_model/atomic_file.h"
#include "sma/staleness_summary.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;
namespace fs = std::filesystem;
using Series = PrometheusText::Metric;
using Type = PrometheusText::Type;

namespace {

constexpr Series kStatus{"arbalest_run_status", Type::kGauge, "1 for the state of the run, 0 for the others"};
constexpr Series kInfo{"arbalest_run_info", Type::kGauge, "Always 1; the labels describe the run"};

const std::vector<std::string>& states() {
  static const std::vector<std::string> kStates = {"running", "target_reached", "completed",
                                                   "stopped", "diverged",       "failed"};
  return kStates;
}

// An empty file may be replaced, too, because nothing is lost. One that cannot be read may not.
bool is_ours(const fs::path& path) {
  std::error_code error;
  if (fs::file_size(path, error) == 0) return true;
  std::ifstream file(path);
  std::string begin(std::string_view("# HELP arbalest_").size(), '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == "# HELP arbalest_";
}

void check_place(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && (!fs::is_regular_file(status) || !is_ours(path))) {
    fail(ErrorKind::kUsage, "--prometheus: '{}' is there already, and arbalest has not written it; name another file",
         path.string());
  }
  const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
  if (!fs::is_directory(directory, error)) {
    fail(ErrorKind::kUsage, "--prometheus: '{}' is no directory; create it first", directory.string());
  }
}

// `on`: "on the test set, after the last epoch".
void add_scores(PrometheusText& text, const dataflow::Metrics& metrics, const std::string& set, const std::string& on,
                const Scores& scores) {
  for (const dataflow::Metric& metric : metrics) {
    const std::string name = fmt::format("arbalest_{}_{}", set, metric.name);
    text.add({name.c_str(), Type::kGauge, fmt::format("The {} {}", metric.title, on).c_str()},
             scores.value(metric.name));
  }
}

// `has_progress`: the loss in training is told already, because runs tell it more often with their progress.
void add_epoch(PrometheusText& text, const dataflow::Metrics& metrics, const EpochRow& row, bool has_progress) {
  dataflow::Metrics in_training = metrics;
  if (has_progress) std::erase_if(in_training, [](const dataflow::Metric& metric) { return metric.name == "loss"; });
  add_scores(text, in_training, "train", "in training, over the last epoch", row.train);
  add_scores(text, metrics, "test", "on the test set, after the last epoch", row.test);
  add_scores(text, metrics, "validation", "on the validation set, after the last epoch", row.validation);
  text.add({"arbalest_replica_distance", Type::kGauge,
            "Root mean square distance of the replicas from the central model, at the end of the last epoch"},
           row.replica_distance);
  text.add({"arbalest_replica_spread", Type::kGauge,
            "Root mean square distance of the replicas from their mean, at the end of the last epoch"},
           row.replica_spread);
  if (row.staleness.empty()) return;
  const sma::StalenessSummary staleness = sma::summary_of(row.staleness);
  text.add({"arbalest_staleness_mean", Type::kGauge, "Mean staleness of the steps, over the last epoch"},
           staleness.mean);
  text.add({"arbalest_staleness_max", Type::kGauge, "Largest staleness of a step, over the last epoch"},
           static_cast<double>(staleness.largest));
}

}  // namespace

PrometheusFile::PrometheusFile(fs::path path) : path_(std::move(path)) { check_place(path_); }

void PrometheusFile::on_start(const RunStart& start) {
  begun_ = true;
  start_ = start;
  elapsed_seconds_ = start.elapsed_seconds;
  learners_per_device_ = start.learners_per_device;
  warnings_ = static_cast<int>(start.warnings.size());
  if (start.resumed) {
    epoch_ = start.resumed->epoch;
    elapsed_seconds_ = start.resumed->elapsed_seconds;
  }
  write();
}

void PrometheusFile::on_progress(const RunProgress& progress) {
  progress_ = progress;
  epoch_ = progress.epoch;
  elapsed_seconds_ = progress.elapsed_seconds;
  if (elapsed_seconds_ >= next_write_seconds_) write();
}

void PrometheusFile::on_epoch(const EpochRow& row) {
  last_epoch_ = row;
  epoch_ = row.epoch;
  elapsed_seconds_ = row.elapsed_seconds;
  if (!row.sparse || !row.sparse->step) learning_rate_ = row.learning_rate;
  write();
}

void PrometheusFile::on_resize(const ResizeRow& row) {
  learners_per_device_ = row.to;
  write();
}

void PrometheusFile::on_rate_drop(const RateDropRow& row) {
  learning_rate_ = row.learning_rate;
  write();
}

void PrometheusFile::on_rollback(const RollbackRow& row) {
  learners_per_device_ = row.learners_per_device;
  epoch_ = row.to_epoch;
  ++rollbacks_;
  write();
}

void PrometheusFile::on_checkpoint(const CheckpointRow& row) {
  checkpoint_ = row.batch;
  write();
}

void PrometheusFile::on_warning(const std::string& /*text*/) {
  ++warnings_;
  if (begun_) write();
}

void PrometheusFile::on_finish(const RunSummary& summary) {
  if (!begun_) return;
  summary_ = summary;
  elapsed_seconds_ = summary.train_seconds;
  epoch_ = summary.epochs_begun;
  write();
}

void PrometheusFile::write() {
  next_write_seconds_ = elapsed_seconds_ + kPauseSeconds;
  try {
    AtomicFile file(path_);
    file.write(text());
    file.replace();
  } catch (const engine::Error& error) {
    if (!fails_ && warn_) warn_(fmt::format("{}; the run goes on without that file", error.what()));
    fails_ = true;
    return;
  }
  if (std::exchange(fails_, false) && warn_) warn_(fmt::format("'{}' can be written again", path_.string()));
}

// The directory of the run is a label of all metrics, so files of several runs may lie in one folder.
std::string PrometheusFile::text() const {
  std::error_code error;
  const fs::path run = fs::absolute(start_.output_directory, error).lexically_normal();
  PrometheusText text(PrometheusLabels{{"run", error ? start_.output_directory : run.string()}});
  text.add(kInfo, {{"name", start_.job}, {"model", start_.model}, {"data", start_.data}}, 1.0);
  text.add_states(kStatus, "status", states(), summary_ ? to_string(summary_->status) : "running");
  text.add({"arbalest_epochs", Type::kGauge, "Epochs trained, with the part of the present one"}, epoch_);
  text.add({"arbalest_max_epochs", Type::kGauge, "Epochs that the job asks for"}, start_.max_epochs);
  text.add({"arbalest_elapsed_seconds", Type::kGauge, "Seconds on the clock of the run"}, elapsed_seconds_);
  text.add({"arbalest_learners", Type::kGauge, "Learners on all devices"},
           std::accumulate(learners_per_device_.begin(), learners_per_device_.end(), 0));
  text.add({"arbalest_team", Type::kGauge, "Learners of the largest team, at the start or the last end of an epoch"},
           last_epoch_ ? last_epoch_->largest_team : start_.largest_team);
  text.add({"arbalest_learning_rate", Type::kGauge, "Learning rate, at the last end of an epoch or decay step"},
           learning_rate_);
  if (progress_) {
    text.add({"arbalest_images_per_second", Type::kGauge, "Training examples per second, over the present epoch"},
             progress_->images_per_second);
    text.add({"arbalest_train_loss", Type::kGauge, "Mean loss in training, over the present epoch"},
             progress_->train_loss);
    text.add({"arbalest_remaining_seconds", Type::kGauge, "Estimate of the seconds up to the last epoch"},
             summary_ ? 0.0 : progress_->remaining_seconds);
  }
  if (last_epoch_) add_epoch(text, start_.metrics, *last_epoch_, progress_.has_value());
  if (checkpoint_) {
    text.add({"arbalest_checkpoint_mini_batches", Type::kGauge, "Mini-batches before the last checkpoint"},
             static_cast<double>(*checkpoint_));
  }
  text.add({"arbalest_rollbacks_total", Type::kCounter, "Times that this process went back to a checkpoint"},
           rollbacks_);
  text.add({"arbalest_warnings_total", Type::kCounter, "Warnings of this process"}, warnings_);
  return text.text();
}

}  // namespace arbalest::jobs
