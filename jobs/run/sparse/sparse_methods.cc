#include "jobs/run/sparse/sparse_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "scheduler/sparse/hogwild.h"
#include "scheduler/sparse/proximal_solver.h"

namespace arbalest::jobs {

namespace {

// The cores of each learner's thread; empty: it floats over all cores.
std::vector<std::vector<int>> cores_of_learners(const JobOptions& job) {
  std::vector<std::vector<int>> cores;
  for (std::size_t d = 0; d < job.devices.size(); ++d) {
    cores.insert(cores.end(), static_cast<std::size_t>(job.learners_per_device[d]), job.devices[d].cores);
  }
  return cores;
}

// The run ends when the objective has settled in an epoch that has visited all coordinates. An epoch with a filter that
// settles the objective is followed by one without.
class DelayedProximal final : public SparseMethod {
 public:
  DelayedProximal(const JobOptions& job, const DelayedProximalOptions& options, const dataflow::SparseRows& rows)
      : rows_(rows.rows()),
        blocks_(options.solver.blocks),
        l1_(options.solver.l1),
        tolerance_(options.tolerance),
        solver_(rows, options.solver, cores_of_learners(job)) {}

  SparseEpoch train(int number, bool is_last, const std::atomic<int>* stop_signal) override {
    const bool visits_all = resets_ || is_last;
    if (visits_all) solver_.reset_filter();
    const scheduler::ProximalPass pass = solver_.pass(static_cast<std::uint64_t>(number) - 1, stop_signal);
    const bool has_settled = settles(pass);
    objective_ = pass.objective;
    resets_ = has_settled;
    return {.is_whole = pass.is_whole,
            .has_ended = has_settled && visits_all && tolerance_ > 0.0,
            .rows = rows_ * pass.blocks / blocks_,
            .loss = pass.loss,
            .accuracy = pass.accuracy,
            .learning_rate = pass.step,
            .progress = {pass.objective, pass.non_zeros, pass.active, pass.violation},
            .warning = is_last && !has_settled && tolerance_ > 0.0 ? unsettled(pass) : ""};
  }

  scheduler::LinearModel model() const override { return solver_.model(); }

 private:
  // Steps that are small for another reason than the minimum leave a violation.
  bool settles(const scheduler::ProximalPass& pass) const {
    constexpr double kSmallViolation = 0.1;  // of l1
    const bool is_near = l1_ == 0.0 || pass.violation <= kSmallViolation * l1_;
    return !pass.is_undone && is_near && std::abs(objective_ - pass.objective) <= tolerance_ * pass.objective;
  }

  std::string unsettled(const scheduler::ProximalPass& pass) const {
    return fmt::format(
        "the objective has not settled: the conditions of its minimum are violated by {:.2g}, where l1 is {:.2g}; "
        "raise training.max_epochs or synchronization.delayed_proximal.blocks, or lower max_delay",
        pass.violation, l1_);
  }

  std::int64_t rows_;
  std::int64_t blocks_;
  double l1_;
  double tolerance_;
  scheduler::ProximalSolver solver_;
  double objective_ = std::numeric_limits<double>::infinity();
  bool resets_ = false;  // whether the next epoch looks at all coordinates again
};

class Hogwild final : public SparseMethod {
 public:
  Hogwild(const JobOptions& job, const HogwildOptions& options, const dataflow::SparseRows& rows)
      : rows_(rows),
        learning_rate_(options.learning_rate),
        solver_(rows, {.bias = job.sparse->bias, .seed = job.training.seed}, cores_of_learners(job)) {}

  SparseEpoch train(int number, bool /*is_last*/, const std::atomic<int>* stop_signal) override {
    const float rate = learning_rate_.at(number - 1, 1);
    const scheduler::HogwildEpoch epoch = solver_.epoch(static_cast<std::uint64_t>(number) - 1, rate, stop_signal);
    return {.is_whole = epoch.is_whole, .rows = epoch.rows, .learning_rate = rate, .progress = {}};
  }

  // The losses of the steps were those of many models; a run reports the loss of the one that it has now.
  void measure(SparseEpoch& epoch) const override {
    const scheduler::LogisticScores scores = scheduler::evaluate(solver_.model(), rows_);
    epoch.loss = scores.loss;
    epoch.accuracy = scores.accuracy;
    epoch.progress.objective = scores.loss;
    epoch.progress.non_zeros =
        std::ranges::count_if(solver_.model().weights, [](float weight) { return weight != 0.0F; });
  }

  scheduler::LinearModel model() const override { return solver_.model(); }

 private:
  const dataflow::SparseRows& rows_;
  scheduler::LearningRateSchedule learning_rate_;
  scheduler::HogwildSolver solver_;
};

}  // namespace

std::unique_ptr<SparseMethod> make_sparse_method(const JobOptions& job, const dataflow::SparseRows& rows) {
  if (const auto* proximal = std::get_if<DelayedProximalOptions>(&job.sparse->scheme)) {
    return std::make_unique<DelayedProximal>(job, *proximal, rows);
  }
  return std::make_unique<Hogwild>(job, std::get<HogwildOptions>(job.sparse->scheme), rows);
}

std::string scheme_text(const SparseOptions& options) {
  const auto* proximal = std::get_if<DelayedProximalOptions>(&options.scheme);
  if (proximal == nullptr) return "hogwild: single rows, one shared model";
  return fmt::format("{} blocks of coordinates, delay at most {}, l1 {}", proximal->solver.blocks,
                     proximal->solver.max_delay, proximal->solver.l1);
}

}  // namespace arbalest::jobs
