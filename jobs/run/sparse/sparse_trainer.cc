#include "jobs/run/sparse/sparse_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include "engine/error.h"
#include "jobs/export/safetensors.h"
#include "jobs/messages/failure.h"
#include "jobs/messages/text.h"
#include "jobs/run/sparse/sparse_methods.h"
#include "jobs/run/sparse/sparse_model.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

std::string model_text(const SparseOptions& options) {
  return fmt::format("logistic regression, {}{}", counted(options.features, "feature"),
                     options.bias ? " and a bias" : "");
}

// "a9a: 32,561 training rows with 451,592 numbers and 16,281 test rows"
std::string data_text(const SparseOptions& options, const dataflow::SparseRows& train,
                      const dataflow::SparseRows& test) {
  return fmt::format("{}: {} with {} and {}", options.directory, counted(train.rows(), "training row"),
                     counted(train.entries(), "number"), counted(test.rows(), "test row"));
}

class SparseTrainer {
 public:
  SparseTrainer(const JobOptions& job, const RunContext& context)
      : job_(job), context_(context), start_(context.now()) {
    summary_.job = job.name;
    summary_.learners_per_device = job.learners_per_device;
    summary_.learners = std::accumulate(job.learners_per_device.begin(), job.learners_per_device.end(), 0);
    for (const engine::DeviceSpec& device : job.devices) summary_.devices.push_back(device.name);
    summary_.seed = job.training.seed;
  }

  RunSummary run() {
    try {
      tell(&RunObserver::on_prepare);
      open();
      announce();
      train();
      save();
    } catch (const std::exception& error) {
      report_failure(error);
      throw;
    }
    finish();
    return summary_;
  }

  DryRun try_out() {
    open();
    train_epoch(1);
    require_finite();
    return {fmt::format("{}: one epoch trained (loss {}), test accuracy {}", job_.name, loss_text(last_.loss),
                        percent(*summary_.test_accuracy)),
            job_.warnings};
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <typename... Parameters, typename... Arguments>
  void tell(void (RunObserver::*event)(Parameters...), const Arguments&... arguments) const {
    for (RunObserver* observer : context_.observers) (observer->*event)(arguments...);
  }

  double seconds_since(Clock::time_point since) const {
    return std::chrono::duration<double>(context_.now() - since).count();
  }

  void open() {
    train_rows_ = load_sparse_rows(*job_.sparse, context_.data_root, SparseSplit::kTrain);
    test_rows_ = load_sparse_rows(*job_.sparse, context_.data_root, SparseSplit::kTest);
    method_ = make_sparse_method(job_, train_rows_);
  }

  void announce() {
    RunStart start;
    start.job = job_.name;
    start.model = model_text(*job_.sparse);
    start.data = data_text(*job_.sparse, train_rows_, test_rows_);
    start.devices = summary_.devices;
    start.learners_per_device = job_.learners_per_device;
    start.classes = 2;
    start.batch_size = std::holds_alternative<HogwildOptions>(job_.sparse->scheme) ? 1 : train_rows_.rows();
    start.scheme = scheme_text(*job_.sparse);
    start.max_epochs = job_.training.max_epochs;
    start.elapsed_seconds = seconds_since(start_);
    start.warnings = job_.warnings;
    start.data_root = std::filesystem::absolute(context_.data_root).lexically_normal().string();
    start.output_directory = context_.output_directory;
    start.job_text = job_.resolved_text;
    tell(&RunObserver::on_start, start);
  }

  void train() {
    summary_.status = RunStatus::kCompleted;
    for (int epoch = 1; epoch <= job_.training.max_epochs; ++epoch) {
      const SparseEpoch done = train_epoch(epoch);
      if (!done.is_whole) return stop();
      tell(&RunObserver::on_epoch, row(epoch));
      if (!done.warning.empty()) tell(&RunObserver::on_warning, done.warning);
      if (const std::string problem = divergence(); !problem.empty()) {
        summary_.status = RunStatus::kDiverged;
        summary_.message = fmt::format("training has diverged: {} after {}; {}", problem, counted(epoch, "epoch"),
                                       "scale the features to about [-1, 1], or make the steps smaller");
        return;
      }
      refuse_save_requests();
      if (done.has_ended) return;
      if (context_.stop_signal != nullptr && *context_.stop_signal != 0) return stop();
    }
  }

  void refuse_save_requests() {
    if (context_.save_requests == nullptr || *context_.save_requests == refused_requests_) return;
    refused_requests_ = *context_.save_requests;
    tell(&RunObserver::on_warning,
         std::string("SIGUSR1 asks for a checkpoint, but a job with sparse_logistic saves none"));
  }

  // Trains an epoch, or the part of one up to a signal, and evaluates the model.
  SparseEpoch train_epoch(int epoch) {
    const Clock::time_point begin = context_.now();
    last_ = method_->train(epoch, epoch == job_.training.max_epochs, context_.stop_signal);
    epoch_seconds_ = seconds_since(begin);
    training_seconds_ += epoch_seconds_;
    summary_.examples += last_.rows;
    const Clock::time_point evaluation = context_.now();
    method_->measure(last_);
    const scheduler::LogisticScores scores = scheduler::evaluate(method_->model(), test_rows_);
    evaluation_seconds_ = seconds_since(evaluation);
    summary_.test_accuracy = scores.accuracy;
    summary_.test_loss = scores.loss;
    summary_.sparse = last_.progress;
    if (!last_.is_whole) return last_;
    summary_.epochs = epoch;
    summary_.best_test_accuracy = std::max(summary_.best_test_accuracy.value_or(0.0), scores.accuracy);
    return last_;
  }

  EpochRow row(int epoch) const {
    return {.epoch = epoch,
            .batch = static_cast<std::uint64_t>(epoch),
            .train_loss = last_.loss,
            .train_accuracy = last_.accuracy,
            .test_loss = summary_.test_loss,
            .test_accuracy = summary_.test_accuracy,
            .images_per_second = epoch_seconds_ > 0.0 ? static_cast<double>(last_.rows) / epoch_seconds_ : 0.0,
            .elapsed_seconds = seconds_since(start_),
            .learning_rate = last_.learning_rate,
            .learners_per_device = job_.learners_per_device,
            .training_seconds = epoch_seconds_,
            .evaluation_seconds = evaluation_seconds_,
            .sparse = last_.progress};
  }

  void stop() {
    const int signal = *context_.stop_signal;
    tell(&RunObserver::on_stop, signal);
    summary_.status = RunStatus::kStopped;
    summary_.stop_signal = signal;
    summary_.message = fmt::format("stopped by {} after {}", signal_name(signal), epochs_text(epochs_begun()));
  }

  double epochs_begun() const {
    return static_cast<double>(summary_.examples) / static_cast<double>(train_rows_.rows());
  }

  // Returns what is not finite; "" if everything is.
  std::string divergence() const {
    if (!std::isfinite(last_.progress.objective)) return "the objective is not finite";
    return std::isfinite(*summary_.test_loss) ? "" : "the test loss is not finite";
  }
  void require_finite() const {
    if (const std::string problem = divergence(); !problem.empty()) engine::fail(ErrorKind::kDiverged, "{}", problem);
  }

  void save() {
    if (context_.output_directory.empty()) return;
    tell(&RunObserver::on_save);
    summary_.model_sha256 =
        write_safetensors(std::filesystem::path(context_.output_directory) / "model.safetensors",
                          to_tensors(method_->model(), job_.sparse->bias), describe_sparse_model(job_));
  }

  void finish() {
    summary_.train_seconds = seconds_since(start_);
    if (train_rows_.rows() > 0) summary_.epochs_begun = epochs_begun();
    summary_.images_per_second =
        training_seconds_ > 0.0 ? static_cast<double>(summary_.examples) / training_seconds_ : 0.0;
    std::exception_ptr failure;
    for (RunObserver* observer : context_.observers) {
      try {
        observer->on_finish(summary_);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
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
  Clock::time_point start_;
  dataflow::SparseRows train_rows_;
  dataflow::SparseRows test_rows_;
  std::unique_ptr<SparseMethod> method_;
  SparseEpoch last_;
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
