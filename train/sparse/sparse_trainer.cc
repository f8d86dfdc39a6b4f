#include "train/sparse/sparse_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "engine/base/error.h"
#include "engine/process/world.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "saved_model/run_files.h"
#include "saved_model/safetensors.h"
#include "train/context/notify_observers.h"
#include "train/live/learned_nothing.h"
#include "train/live/run_start.h"
#include "train/processes/agreement.h"
#include "train/processes/shared_results.h"
#include "train/sparse/memory_advice.h"
#include "train/sparse/sparse_methods.h"
#include "train/sparse/sparse_metrics.h"
#include "train/sparse/sparse_processes.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::process::Phase;

namespace {

class SparseTrainer {
 public:
  SparseTrainer(const JobOptions& job, const RunContext& context)
      : job_(job),
        context_(context),
        world_(context.world == nullptr ? alone_ : *context.world),
        start_(context.now()) {
    summary_.job = job.name;
    summary_.metrics = sparse_metrics(job);
    summary_.is_sparse = true;
    summary_.learners_per_device = join(world_, job.learners_per_device);
    summary_.learners = std::reduce(summary_.learners_per_device.begin(), summary_.learners_per_device.end());
    summary_.devices = device_names(job.devices, world_);
    summary_.seed = job.training.seed;
  }

  RunSummary run() {
    try {
      with_memory_advice(job_, [&] {
        notify_observers(context_.observers, &RunObserver::on_prepare);
        open();
        announce();
        train();
        save();
      });
    } catch (const SharedError& error) {  // all processes know it
      report_failure(error);
      throw;
    } catch (const std::exception& error) {
      world_.announce_failure(as_error(error));  // the others must not wait for this process
      const std::string saved = as_error(error).kind() == ErrorKind::kPeer ? save_after_loss() : "";
      if (saved.empty()) {
        report_failure(error);
        throw;
      }
      const engine::Error told(ErrorKind::kPeer, error.what() + saved);
      report_failure(told);
      throw told;
    }
    world_.set_position(epoch_, Phase::kEnd);
    finish();
    return summary_;
  }

  DryRun try_out() {
    with_memory_advice(job_, [&] {
      open();
      train_epoch(1);
      together(world_, [&] { require_finite(); });
    });
    const dataflow::Metric& judged = dataflow::score_of(summary_.metrics);
    return {fmt::format("{}: one epoch trained (loss {}), test {} {}", job_.name, loss_text(last_.scores.loss()),
                        judged.title, value_text(judged, *summary_.test.value(judged.name))),
            warnings_};
  }

 private:
  using Clock = std::chrono::steady_clock;

  // The model after an epoch, or after the part of one that a signal has ended, and its scores.
  struct FiniteModel {
    int epoch = 0;
    std::vector<dataflow::NamedTensor> tensors;
    Scores test;
    SparseProgress progress;
  };

  double seconds_since(Clock::time_point since) const {
    return std::chrono::duration<double>(context_.now() - since).count();
  }

  bool leads() const { return world_.rank() == 0; }

  void open() {
    world_.set_position(0, Phase::kLoading);
    warnings_ = job_.warnings;
    const int own = std::reduce(job_.learners_per_device.begin(), job_.learners_per_device.end());
    const scheduler::ProximalShare share = share_of_learners(world_, own);
    together(world_, [&] {
      const engine::process::World::FileWork work(world_);  // the others wait
      with_memory_advice(job_, [&] { method_ = make_sparse_method(job_, context_.data_root, share, warnings_); });
    });
    require_same_rows(world_, method_->digest());
    facts_ = method_->facts();
  }

  void announce() {
    RunStart start;
    start.job = job_.name;
    start.model = facts_.model;
    start.data = facts_.data;
    start.devices = summary_.devices;
    start.learners_per_device = summary_.learners_per_device;
    start.metrics = summary_.metrics;
    start.scheme = facts_.scheme;
    start.max_epochs = job_.training.max_epochs;
    start.elapsed_seconds = seconds_since(start_);
    start.warnings = warnings_of_all(world_, warnings_);
    start.data_root = std::filesystem::absolute(context_.data_root).lexically_normal().string();
    start.output_directory = context_.output_directory;
    start.job_text = job_.resolved_text;
    notify_observers(context_.observers, &RunObserver::on_start, start);
  }

  void train() {
    summary_.status = RunStatus::kCompleted;
    const std::optional<double> untrained = loss_of_untrained();
    train_epochs();
    if (summary_.status != RunStatus::kCompleted) return;
    const std::string problem = learned_nothing(untrained, last_.scores.loss(), summary_.examples);
    if (problem.empty()) return;
    summary_.status = RunStatus::kDiverged;
    summary_.message = fmt::format("training has diverged: {}; {}", problem, facts_.advice);
  }

  // None for methods that undo an epoch that raises the loss.
  std::optional<double> loss_of_untrained() const {
    SparseEpoch start;
    method_->measure(start);
    return start.scores.empty() ? std::nullopt : std::optional(start.scores.loss());
  }

  void train_epochs() {
    for (int epoch = 1; epoch <= job_.training.max_epochs; ++epoch) {
      const SparseEpoch done = train_epoch(epoch);
      const int signal = agreement_.now({.stop_signal = own_signal()}).stop_signal;
      if (done.is_whole) {
        summary_.epochs = epoch;
        notify_observers(context_.observers, &RunObserver::on_epoch, row(epoch));
        if (!done.warning.empty()) notify_observers(context_.observers, &RunObserver::on_warning, done.warning);
      }
      std::vector<dataflow::NamedTensor> model = method_->tensors();
      if (const std::string problem = divergence(model); !problem.empty()) return end_diverged(problem);
      finite_ = {epoch, std::move(model), summary_.test, last_.progress};
      if (!done.is_whole) return stop(signal);
      const std::string& judged = dataflow::score_of(summary_.metrics).name;
      summary_.best_test = order_of(summary_.metrics).better(summary_.test.value(judged), summary_.best_test);
      refuse_save_requests();
      if (done.has_ended) return;
      if (signal != 0) return stop(signal);
    }
  }

  int own_signal() const { return context_.stop_signal == nullptr ? 0 : context_.stop_signal->load(); }

  void refuse_save_requests() {
    if (context_.save_requests == nullptr || *context_.save_requests == refused_requests_) return;
    refused_requests_ = *context_.save_requests;
    notify_observers(context_.observers, &RunObserver::on_warning,
                     std::string("SIGUSR1 asks for a checkpoint, but a job of this scheme saves none"));
  }

  // Trains an epoch, or the part of one up to a signal, and evaluates the model.
  SparseEpoch train_epoch(int epoch) {
    const Clock::time_point begin = context_.now();
    epoch_ = static_cast<std::uint64_t>(epoch);
    world_.set_position(epoch_, Phase::kTraining);
    last_ = method_->train(epoch, epoch == job_.training.max_epochs, context_.stop_signal);
    epoch_seconds_ = seconds_since(begin);
    training_seconds_ += epoch_seconds_;
    summary_.examples += last_.rows;
    const Clock::time_point evaluation = context_.now();
    world_.set_position(epoch_, Phase::kEvaluation);
    method_->measure(last_);
    summary_.test = test_on_rank_0(world_, *method_);
    evaluation_seconds_ = seconds_since(evaluation);
    summary_.sparse = last_.progress;
    return last_;
  }

  EpochRow row(int epoch) const {
    return {.epoch = epoch,
            .batch = static_cast<std::uint64_t>(epoch),
            .train = last_.scores,
            .test = summary_.test,
            .images_per_second = epoch_seconds_ > 0.0 ? static_cast<double>(last_.rows) / epoch_seconds_ : 0.0,
            .elapsed_seconds = seconds_since(start_),
            .learning_rate = last_.learning_rate,
            .learners_per_device = summary_.learners_per_device,
            .training_seconds = epoch_seconds_,
            .evaluation_seconds = evaluation_seconds_,
            .sparse = last_.progress};
  }

  void stop(int signal) {
    notify_observers(context_.observers, &RunObserver::on_stop, signal);
    summary_.status = RunStatus::kStopped;
    summary_.stop_signal = signal;
    summary_.message = fmt::format("stopped by {} after {}", signal_name(signal), epochs_text(epochs_begun()));
  }

  double epochs_begun() const { return static_cast<double>(summary_.examples) / static_cast<double>(method_->rows()); }

  // Returns what is not finite; "" if everything is. All processes have the same model and scores.
  std::string divergence(const std::vector<dataflow::NamedTensor>& model) const {
    if (!std::isfinite(last_.progress.objective)) return "the objective is not finite";
    if (!std::isfinite(summary_.test.loss())) return "the test loss is not finite";
    for (const dataflow::NamedTensor& tensor : model) {
      if (std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); })) continue;
      return fmt::format("the tensor '{}' is not finite", tensor.name);
    }
    return "";
  }
  void require_finite() const {
    const std::string problem = divergence(method_->tensors());
    if (!problem.empty()) engine::fail(ErrorKind::kDiverged, "{}", problem);
  }

  // The run goes back to the model of the last finite epoch, which is saved in place of the present one.
  void end_diverged(const std::string& problem) {
    summary_.status = RunStatus::kDiverged;
    summary_.message =
        fmt::format("training has diverged: {} after {}; {}; {}", problem, epochs_text(epochs_begun()), facts_.advice,
                    finite_ ? fmt::format("the last finite model is that of epoch {}", finite_->epoch)
                            : "no epoch has ended with a finite model, so none is saved");
    go_back();
  }

  // Sets the scores of the model that is saved.
  void go_back() {
    summary_.test = finite_ ? finite_->test : Scores{};
    summary_.sparse = finite_ ? std::optional(finite_->progress) : std::nullopt;
  }

  void save() {
    world_.set_position(epoch_, Phase::kSaving);
    if (!finite_ || !leads() || context_.output_directory.empty()) return;
    const engine::process::World::FileWork work(world_);  // the others wait
    notify_observers(context_.observers, &RunObserver::on_save);
    summary_.model_sha256 = write_safetensors(std::filesystem::path(context_.output_directory) / kModelFile,
                                              finite_->tensors, method_->description());
  }

  // A run has no checkpoints, so the end of another process would cost all that was trained. Rank 0 saves the model of
  // the last finite epoch. Returns what to add to the error; "" if there is nothing to save.
  std::string save_after_loss() {
    if (!finite_ || !leads() || context_.output_directory.empty()) return "";
    try {
      go_back();
      save();
      return fmt::format(" (the model of epoch {} is saved)", finite_->epoch);
    } catch (const std::exception& error) {
      return fmt::format(" (the model of epoch {} is not saved: {})", finite_->epoch, as_error(error).what());
    }
  }

  void finish() {
    summary_.train_seconds = seconds_since(start_);
    if (method_ != nullptr) summary_.epochs_begun = epochs_begun();
    summary_.images_per_second =
        training_seconds_ > 0.0 ? static_cast<double>(summary_.examples) / training_seconds_ : 0.0;
    notify_finish(context_.observers, summary_);
  }

  void report_failure(const std::exception& error) noexcept {
    try {
      summary_.status = RunStatus::kFailed;
      summary_.message = as_error(error).what();
      finish();
    } catch (const std::exception&) {
      return;  // the caller rethrows the first error
    }
  }

  const JobOptions& job_;
  const RunContext& context_;
  engine::process::World alone_;
  engine::process::World& world_;
  Agreement agreement_{world_};
  Clock::time_point start_;
  std::unique_ptr<SparseMethod> method_;
  SparseFacts facts_;
  std::vector<std::string> warnings_;  // the job's and the data's
  SparseEpoch last_;
  std::optional<FiniteModel> finite_;  // the last finite one; none: no epoch has ended with one
  std::uint64_t epoch_ = 0;            // the last one that has begun
  double epoch_seconds_ = 0.0;
  double evaluation_seconds_ = 0.0;
  double training_seconds_ = 0.0;
  int refused_requests_ = 0;  // of RunContext::save_requests
  RunSummary summary_;
};

}  // namespace

RunSummary train_sparse(const JobOptions& job, const RunContext& context) { return SparseTrainer(job, context).run(); }

DryRun dry_run_sparse(const JobOptions& job, const RunContext& context) {
  RunContext alone = context;  // signals end a dry run as they end any program
  alone.stop_signal = nullptr;
  alone.observers.clear();
  return SparseTrainer(job, alone).try_out();
}

}  // namespace arbalest::jobs
