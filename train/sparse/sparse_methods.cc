#include "train/sparse/sparse_methods.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/host/memory_budget.h"
#include "messages/text.h"
#include "scheduler/sparse/hogwild.h"
#include "scheduler/sparse/logistic_loss.h"
#include "scheduler/sparse/proximal_solver.h"
#include "sma/divergence_remedy.h"
#include "train/sparse/factorization_method.h"
#include "train/sparse/sparse_metrics.h"
#include "train/sparse/sparse_model.h"

namespace arbalest::jobs {

namespace {

// Logistic regression, however it is trained. It owns its rows.
class LogisticMethod : public SparseMethod {
 public:
  LogisticMethod(const JobOptions& job, const std::string& data_root, bool has_test_set)
      : train_rows_(load_sparse_rows(*job.sparse, data_root, SparseSplit::kTrain)),
        rows_(train_rows_.rows()),
        entries_(train_rows_.entries()),
        job_(job) {
    if (has_test_set) test_rows_ = load_sparse_rows(*job.sparse, data_root, SparseSplit::kTest);
  }

  SparseFacts facts() const override {
    const SparseOptions& options = *job_.sparse;
    return {.model = fmt::format("logistic regression, {}{}", counted(options.features, "feature"),
                                 options.bias ? " and a bias" : ""),
            .data = fmt::format("{}: {} with {} and {}", options.directory, counted(rows_, "training row"),
                                counted(entries_, "number"), counted(test_rows_.rows(), "test row")),
            .scheme = scheme_text(options),
            .advice = "scale the features to about [-1, 1], or " + remedy()};
  }
  std::int64_t rows() const override { return rows_; }

  SparseTest test() const override {
    const scheduler::LogisticScores scores = scheduler::evaluate(model(), test_rows_);
    return {.scores = to_scores(scores.loss, scores.accuracy), .rows = test_rows_.rows()};
  }
  std::vector<dataflow::NamedTensor> tensors() const override { return to_tensors(model(), job_.sparse->bias); }
  Metadata description() const override { return describe_sparse_model(job_); }

 protected:
  virtual scheduler::LinearModel model() const = 0;
  const dataflow::SparseRows& train_rows() const { return train_rows_; }
  Scores to_scores(double loss, double accuracy) const {
    return scores_of_means(sparse_metrics(job_), {loss, accuracy});
  }
  // A method that keeps the rows in another form calls it.
  void forget_train_rows() { train_rows_ = {}; }
  // Names what makes the steps smaller, if they diverge.
  virtual std::string remedy() const = 0;

 private:
  // "16 blocks of coordinates, delay at most 2, l1 0.0001", "hogwild: single rows, one shared model"
  static std::string scheme_text(const SparseOptions& options) {
    const auto* proximal = std::get_if<DelayedProximalOptions>(&options.scheme);
    if (proximal == nullptr) return "hogwild: single rows, one shared model";
    return fmt::format("{} blocks of coordinates, delay at most {}, l1 {}", proximal->solver.blocks,
                       proximal->solver.max_delay, proximal->solver.l1);
  }

  dataflow::SparseRows train_rows_;
  dataflow::SparseRows test_rows_;
  std::int64_t rows_;     // of the training set
  std::int64_t entries_;  // likewise

 protected:
  const JobOptions& job_;
};

// The run ends when the objective has settled in an epoch that has visited all coordinates. An epoch with a filter that
// settles the objective is followed by one without.
class DelayedProximal final : public LogisticMethod {
 public:
  DelayedProximal(const JobOptions& job, const DelayedProximalOptions& options, const std::string& data_root,
                  const scheduler::ProximalShare& share)
      : LogisticMethod(job, data_root, share.world == nullptr || share.world->rank() == 0),
        options_(options.solver),
        coordinates_(job.sparse->features + (job.sparse->bias ? 1 : 0)),
        tolerance_(options.tolerance),
        digest_(share.world == nullptr || share.world->size() == 1 ? "" : digest_of(train_rows())),
        solver_(rows_with_room(share), options.solver, cores_of_learners(job), share) {
    forget_train_rows();
  }

  std::string digest() const override { return digest_; }

  SparseEpoch train(int number, bool is_last, const std::atomic<int>* stop_signal) override {
    const bool visits_all = resets_ || is_last;
    if (visits_all) solver_.reset_filter();
    const scheduler::ProximalPass pass = solver_.pass(static_cast<std::uint64_t>(number) - 1, stop_signal);
    // A job that trains for max_epochs in any case (tolerance: 0) goes on and is warned as one with the default.
    const bool has_settled = settles(pass, tolerance_ > 0.0 ? tolerance_ : DelayedProximalOptions().tolerance);
    const bool is_warned = is_last && !has_settled;
    objective_ = pass.objective;
    resets_ = has_settled;
    return {.is_whole = pass.is_whole,
            .has_ended = has_settled && visits_all && tolerance_ > 0.0,
            .rows = rows() * pass.blocks / options_.blocks,
            .scores = to_scores(pass.loss, pass.accuracy),
            .progress = {pass.objective, pass.non_zeros, pass.active, pass.violation, pass.step},
            .warning = is_warned ? unsettled(pass) : ""};
  }

  scheduler::LinearModel model() const override { return solver_.model(); }

 private:
  // The training rows. Throws kOutOfMemory if the columns that the solver makes of its part of them do not fit.
  const dataflow::SparseRows& rows_with_room(const scheduler::ProximalShare& share) const {
    const std::int64_t processes = share.world == nullptr ? 1 : share.world->size();
    const std::int64_t entries = train_rows().entries() / processes;
    const std::int64_t own = static_cast<std::int64_t>(cores_of_learners(job_).size());
    engine::host::MemoryBudget().require(static_cast<std::uint64_t>(entries) * (sizeof(std::int32_t) + sizeof(float)) +
                                             static_cast<std::uint64_t>(own * coordinates_) * sizeof(std::int64_t),
                                         "the columns of the training rows",
                                         "use fewer features (data.libsvm.features) or fewer rows, or more memory");
    return train_rows();
  }

  // Steps that are small for another reason than the minimum leave a violation.
  bool settles(const scheduler::ProximalPass& pass, double tolerance) const {
    constexpr double kSmallViolation = 0.1;  // of l1
    const bool is_near = options_.l1 == 0.0 || pass.violation <= kSmallViolation * options_.l1;
    return !pass.is_undone && is_near && std::abs(objective_ - pass.objective) <= tolerance * pass.objective;
  }

  std::string unsettled(const scheduler::ProximalPass& pass) const {
    std::vector<std::string> ways = {"raise training.max_epochs"};
    if (options_.blocks < coordinates_) ways.emplace_back("raise synchronization.delayed_proximal.blocks");
    if (options_.max_delay > 0) ways.emplace_back("lower synchronization.delayed_proximal.max_delay");
    return fmt::format(
        "the objective has not settled: the conditions of its minimum are violated by {:.2g}, where l1 is {:.2g}; {}",
        pass.violation, options_.l1, fmt::join(ways, ", or "));
  }

  std::string remedy() const override { return sma::delayed_proximal_remedy(options_.max_delay); }

  const scheduler::ProximalOptions options_;
  const std::int64_t coordinates_;
  const double tolerance_;
  std::string digest_;
  scheduler::ProximalSolver solver_;
  double objective_ = std::numeric_limits<double>::infinity();
  bool resets_ = false;  // whether the next epoch looks at all coordinates again
};

class Hogwild final : public LogisticMethod {
 public:
  Hogwild(const JobOptions& job, const HogwildOptions& options, const std::string& data_root)
      : LogisticMethod(job, data_root, /*has_test_set=*/true),
        learners_(static_cast<int>(cores_of_learners(job).size())),
        learning_rate_(options.learning_rate),
        solver_(train_rows(), {.bias = job.sparse->bias, .seed = job.training.seed}, cores_of_learners(job)) {}

  SparseEpoch train(int number, bool /*is_last*/, const std::atomic<int>* stop_signal) override {
    const float rate = learning_rate_.at(number - 1, 1);
    const scheduler::HogwildEpoch epoch = solver_.epoch(static_cast<std::uint64_t>(number) - 1, rate, stop_signal);
    return {.is_whole = epoch.is_whole, .rows = epoch.rows, .learning_rate = rate, .progress = {}};
  }

  // The losses of the steps were those of many models; a run reports the loss of the one that it has now.
  void measure(SparseEpoch& epoch) const override {
    const scheduler::LogisticScores scores = scheduler::evaluate(solver_.model(), train_rows());
    epoch.scores = to_scores(scores.loss, scores.accuracy);
    epoch.progress.objective = scores.loss;
    epoch.progress.non_zeros =
        std::ranges::count_if(solver_.model().weights, [](float weight) { return weight != 0.0F; });
  }

  scheduler::LinearModel model() const override { return solver_.model(); }

 private:
  std::string remedy() const override { return sma::hogwild_rows_remedy(learners_); }

  int learners_;
  scheduler::LearningRateSchedule learning_rate_;
  scheduler::HogwildSolver solver_;
};

}  // namespace

std::unique_ptr<SparseMethod> make_sparse_method(const JobOptions& job, const std::string& data_root,
                                                 const scheduler::ProximalShare& share,
                                                 std::vector<std::string>& warnings) {
  if (job.graph != nullptr) return make_factorization_method(job, data_root, warnings);
  if (const auto* proximal = std::get_if<DelayedProximalOptions>(&job.sparse->scheme)) {
    return std::make_unique<DelayedProximal>(job, *proximal, data_root, share);
  }
  return std::make_unique<Hogwild>(job, std::get<HogwildOptions>(job.sparse->scheme), data_root);
}

std::vector<std::vector<int>> cores_of_learners(const JobOptions& job) {
  std::vector<std::vector<int>> cores;
  for (std::size_t d = 0; d < job.devices.size(); ++d) {
    const std::vector<int>& named = job.devices[d].cores;
    for (std::size_t learner = 0; learner < static_cast<std::size_t>(job.learners_per_device[d]); ++learner) {
      cores.emplace_back();
      if (!named.empty()) cores.back().push_back(named[learner % named.size()]);
    }
  }
  return cores;
}

}  // namespace arbalest::jobs
