#include "scheduler/sparse/proximal_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "dataflow/input/sparse/sparse_columns.h"
#include "engine/error.h"
#include "scheduler/sparse/worker_threads.h"
#include "sma/proximal_step.h"

namespace arbalest::scheduler {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestCurvature = 0.25;              // of the logistic loss
constexpr double kFilterRatio = 10.0;                   // margin of the filter = worst violation / rows * ratio
constexpr double kRounding = 1e-9;                      // relative; a rise of the objective by less is rounding
constexpr int kFallsToGrow = 8;                         // passes
constexpr std::uint64_t kOrderStream = 0x626C6F636B73;  // "blocks"

// min(p (1 - p) exp(z), 1/4) for z >= 0, with p = wrong_probability(margin). With q = max(p, 1 - p) >= 1/2 the first is
// exp(z - |margin|) q^2, which neither overflows nor is lost where p rounds to 0 or 1.
double bounded_curvature(double margin, double p, double z) {
  const double exponent = z - std::abs(margin);
  if (exponent >= 0.0) return kLargestCurvature;
  const double q = std::max(p, 1.0 - p);
  return std::min(std::exp(exponent) * q * q, kLargestCurvature);
}

}  // namespace

struct ProximalSolver::Worker {
  dataflow::SparseColumns columns;
  std::vector<double> labels;   // [rows of this worker]
  std::vector<double> margins;  // [rows]
  std::vector<double> wrong;    // [rows] wrong_probability(margin)
  std::vector<double> before;   // margins before the pass
  double loss = 0.0;            // sum after a pass
  std::int64_t right = 0;
};

// The sums and steps of a block that is under way.
struct ProximalSolver::Slot {
  std::vector<std::vector<double>> gradients;   // [workers][block size], sums over rows
  std::vector<std::vector<double>> curvatures;  // likewise
  std::vector<double> steps;                    // [block size]
};

ProximalSolver::ProximalSolver(const dataflow::SparseRows& rows, const ProximalOptions& options,
                               std::vector<std::vector<int>> cores)
    : options_(options),
      cores_(std::move(cores)),
      rows_(static_cast<double>(rows.rows())),
      filter_margin_(kInfinity),
      largest_step_(options.step) {
  const std::int64_t coordinates = rows.columns + (options.bias ? 1 : 0);
  ARBALEST_CHECK(options.blocks >= 1 && options.blocks <= coordinates && !cores_.empty());
  ARBALEST_CHECK(options.max_delay >= 0 && options.max_delay < options.blocks && rows.rows() > 0);
  const auto count = static_cast<std::size_t>(coordinates);
  blocks_ = equal_blocks(coordinates, options.blocks);
  weights_.assign(count, 0.0);
  bounds_.assign(count, options.first_bound);
  is_active_.assign(count, 1);
  violations_.assign(blocks_.size(), 0.0);
  const auto ones = options.bias ? dataflow::ColumnOfOnes::kYes : dataflow::ColumnOfOnes::kNo;
  const std::vector<std::int64_t> first = dataflow::equal_parts(rows, static_cast<int>(cores_.size()));
  for (std::size_t w = 0; w < cores_.size(); ++w) {
    auto worker = std::make_unique<Worker>();
    worker->columns = dataflow::columns_of(rows, first[w], first[w + 1], ones);
    worker->labels.assign(rows.labels.begin() + first[w], rows.labels.begin() + first[w + 1]);
    worker->margins.assign(worker->labels.size(), 0.0);
    worker->wrong.assign(worker->labels.size(), wrong_probability(0.0));
    workers_.push_back(std::move(worker));
  }
  const auto largest = static_cast<std::size_t>(blocks_.front().size());
  const std::vector<std::vector<double>> parts(cores_.size(), std::vector<double>(largest));
  slots_.assign(static_cast<std::size_t>(options.max_delay) + 1, {parts, parts, std::vector<double>(largest)});
}

ProximalSolver::~ProximalSolver() = default;

ProximalSolver::Slot& ProximalSolver::slot_of(std::int64_t position) {
  return slots_[static_cast<std::size_t>(position) % slots_.size()];
}

const CoordinateBlock& ProximalSolver::block_at(std::int64_t position) const {
  return blocks_[static_cast<std::size_t>(order_[static_cast<std::size_t>(position)])];
}

ProximalPass ProximalSolver::pass(std::uint64_t number, const std::atomic<int>* stop_signal) {
  const auto blocks = static_cast<std::int64_t>(blocks_.size());
  order_ = random_order(blocks, options_.seed, kOrderStream, number);
  before_ = {weights_, bounds_, is_active_};
  std::ranges::fill(violations_, 0.0);
  DelayWindow window(static_cast<int>(workers_.size()), blocks, options_.max_delay);
  run_workers(
      cores_, [&](int worker) { work(worker, window, stop_signal); }, [&] { window.cancel(); });
  return results(window.wait_for_end());
}

void ProximalSolver::work(int number, DelayWindow& window, const std::atomic<int>* stop_signal) {
  Worker& worker = *workers_[static_cast<std::size_t>(number)];
  worker.before = worker.margins;
  std::int64_t applied = 0;  // blocks before this one are part of the margins
  for (std::int64_t position = 0; window.start(position); ++position) {
    while (applied < position - options_.max_delay) apply(worker, applied++);
    add_gradient(number, position);
    if (!window.publish(position)) continue;
    step(position);
    if (stop_signal != nullptr && stop_signal->load() != 0) window.stop();
    window.finish(position);
  }
  const std::int64_t end = window.wait_for_end();
  while (applied < end) apply(worker, applied++);
  worker.loss = 0.0;
  worker.right = 0;
  for (const double margin : worker.margins) {
    worker.loss += logistic_loss(margin);
    worker.right += margin > 0.0 ? 1 : 0;
  }
}

void ProximalSolver::add_gradient(int number, std::int64_t position) {
  const Worker& worker = *workers_[static_cast<std::size_t>(number)];
  const dataflow::SparseColumns& columns = worker.columns;
  const CoordinateBlock& block = block_at(position);
  std::vector<double>& gradients = slot_of(position).gradients[static_cast<std::size_t>(number)];
  std::vector<double>& curvatures = slot_of(position).curvatures[static_cast<std::size_t>(number)];
  for (std::int64_t j = block.first; j < block.end; ++j) {
    const auto column = static_cast<std::size_t>(j);
    double gradient = 0.0;
    double curvature = 0.0;
    if (is_active_[column] != 0) {
      const double bound = bounds_[column];
      const auto end = static_cast<std::size_t>(columns.starts[column + 1]);
      for (auto e = static_cast<std::size_t>(columns.starts[column]); e < end; ++e) {
        const auto row = static_cast<std::size_t>(columns.rows[e]);
        const double x = columns.values[e];
        const double p = worker.wrong[row];
        gradient -= worker.labels[row] * p * x;
        curvature += bounded_curvature(worker.margins[row], p, std::abs(x) * bound) * x * x;
      }
    }
    gradients[static_cast<std::size_t>(j - block.first)] = gradient;
    curvatures[static_cast<std::size_t>(j - block.first)] = curvature;
  }
}

// Only one thread has a block's coordinates: they are in no other block.
void ProximalSolver::step(std::int64_t position) {
  const CoordinateBlock& block = block_at(position);
  Slot& slot = slot_of(position);
  double violation = 0.0;
  for (std::int64_t j = block.first; j < block.end; ++j) {
    const auto place = static_cast<std::size_t>(j - block.first);
    double gradient = 0.0;
    double curvature = 0.0;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      gradient += slot.gradients[w][place];
      curvature += slot.curvatures[w][place];
    }
    slot.steps[place] =
        step_coordinate(static_cast<std::size_t>(j), gradient / rows_, curvature / rows_ / options_.step, violation);
  }
  violations_[static_cast<std::size_t>(position)] = violation;
}

double ProximalSolver::step_coordinate(std::size_t j, double gradient, double curvature, double& violation) {
  if (is_active_[j] == 0) return 0.0;
  const bool is_bias = static_cast<std::int64_t>(j) == features();
  const sma::Coordinate at{weights_[j], gradient, curvature, is_bias ? 0.0 : options_.l1};
  if (sma::is_filtered(at, filter_margin_)) {
    is_active_[j] = 0;
    return 0.0;
  }
  violation = std::max(violation, sma::kkt_violation(at));
  const double step = sma::proximal_step(at, bounds_[j]);
  bounds_[j] = sma::next_bound(step, options_.largest_bound);
  weights_[j] += step;
  return step;
}

void ProximalSolver::apply(Worker& worker, std::int64_t position) {
  const CoordinateBlock& block = block_at(position);
  const std::vector<double>& steps = slot_of(position).steps;
  const dataflow::SparseColumns& columns = worker.columns;
  for (std::int64_t j = block.first; j < block.end; ++j) {
    const double step = steps[static_cast<std::size_t>(j - block.first)];
    if (step == 0.0) continue;
    const auto end = static_cast<std::size_t>(columns.starts[static_cast<std::size_t>(j) + 1]);
    for (auto e = static_cast<std::size_t>(columns.starts[static_cast<std::size_t>(j)]); e < end; ++e) {
      const auto row = static_cast<std::size_t>(columns.rows[e]);
      worker.margins[row] += worker.labels[row] * step * columns.values[e];
      worker.wrong[row] = wrong_probability(worker.margins[row]);
    }
  }
}

ProximalPass ProximalSolver::results(std::int64_t blocks) {
  ProximalPass pass{
      .is_whole = blocks == static_cast<std::int64_t>(blocks_.size()), .blocks = blocks, .step = options_.step};
  std::int64_t right = 0;
  for (const auto& worker : workers_) {
    pass.loss += worker->loss / rows_;
    right += worker->right;
  }
  pass.accuracy = static_cast<double>(right) / rows_;
  double norm = 0.0;
  for (std::int64_t j = 0; j < features(); ++j) {
    norm += std::abs(weights_[static_cast<std::size_t>(j)]);
    pass.non_zeros += weights_[static_cast<std::size_t>(j)] != 0.0 ? 1 : 0;
  }
  pass.active = std::ranges::count(is_active_, std::uint8_t{1});
  pass.objective = pass.loss + options_.l1 * norm;
  pass.violation = std::ranges::max(violations_);
  filter_margin_ = pass.violation / rows_ * kFilterRatio;
  return judged(pass);
}

ProximalPass ProximalSolver::judged(const ProximalPass& pass) {
  const bool has_risen = !(pass.objective <= last_.objective * (1.0 + kRounding));
  if (!has_risen) {
    last_ = pass;
    if (++falls_ % kFallsToGrow == 0) options_.step = std::min(2.0 * options_.step, largest_step_);
    return pass;
  }
  undo();
  falls_ = 0;
  options_.step *= 0.5;
  ProximalPass result = last_;
  result.is_whole = pass.is_whole;
  result.is_undone = true;
  result.blocks = pass.blocks;
  result.violation = pass.violation;
  result.step = pass.step;
  result.active = std::ranges::count(is_active_, std::uint8_t{1});
  return result;
}

void ProximalSolver::undo() {
  weights_ = before_.weights;
  bounds_ = before_.bounds;
  is_active_ = before_.is_active;
  for (const auto& worker : workers_) {
    worker->margins = worker->before;
    std::ranges::transform(worker->margins, worker->wrong.begin(), wrong_probability);
  }
}

void ProximalSolver::reset_filter() {
  std::ranges::fill(is_active_, std::uint8_t{1});
  filter_margin_ = kInfinity;
}

double ProximalSolver::bias() const { return options_.bias ? weights_.back() : 0.0; }

LinearModel ProximalSolver::model() const {
  return {{weights_.begin(), weights_.begin() + features()}, static_cast<float>(bias())};
}

}  // namespace arbalest::scheduler
