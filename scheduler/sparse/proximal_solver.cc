#include "scheduler/sparse/proximal_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "dataflow/input/sparse/sparse_columns.h"
#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "scheduler/sparse/block_exchange.h"
#include "scheduler/sparse/delay_window.h"
#include "scheduler/sparse/order_streams.h"
#include "scheduler/sparse/sum_in_pairs.h"
#include "scheduler/sparse/worker_threads.h"
#include "sma/proximal_step.h"

namespace arbalest::scheduler {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFilterRatio = 10.0;  // margin of the filter = worst violation / rows * ratio
constexpr double kRounding = 1e-9;     // relative; a rise of the objective by less is rounding
constexpr int kFallsToGrow = 8;        // passes

// The numbers of one process at the end of a pass.
struct PassPart {
  RowMargins::Score score;
  double norm = 0.0;  // of the weights
};

}  // namespace

// A pass that is under way.
struct ProximalSolver::Course {
  DelayWindow window;
  BlockExchange exchange;
  const std::atomic<int>* stop_signal;  // or null
};

ProximalSolver::ProximalSolver(const dataflow::SparseRows& rows, const ProximalOptions& options,
                               std::vector<std::vector<int>> cores, const ProximalShare& share)
    : options_(options),
      cores_(std::move(cores)),
      share_(share),
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
  const int workers = share.workers == 0 ? static_cast<int>(cores_.size()) : share.workers;
  const std::vector<std::int64_t> first = dataflow::equal_parts(rows, workers);
  for (std::size_t w = 0; w < cores_.size(); ++w) {
    const std::size_t number = static_cast<std::size_t>(share.first) + w;
    workers_.emplace_back(rows, first[number], first[number + 1], ones);
  }
  scores_.resize(workers_.size());
  const auto largest = static_cast<std::size_t>(blocks_.front().size());
  slots_.assign(static_cast<std::size_t>(options.max_delay) + 1,
                {std::vector<BlockSums>(cores_.size()), std::vector<double>(largest)});
}

ProximalSolver::Slot& ProximalSolver::slot_of(std::int64_t position) {
  return slots_[static_cast<std::size_t>(position) % slots_.size()];
}

const CoordinateBlock& ProximalSolver::block_at(std::int64_t position) const {
  return blocks_[static_cast<std::size_t>(order_[static_cast<std::size_t>(position)])];
}

ProximalPass ProximalSolver::pass(std::uint64_t number, const std::atomic<int>* stop_signal) {
  const auto blocks = static_cast<std::int64_t>(blocks_.size());
  order_ = random_order(blocks, options_.seed, kBlockOrder, number);
  before_ = {weights_, bounds_, is_active_};
  std::ranges::fill(violations_, 0.0);
  const auto own = static_cast<int>(workers_.size());
  Course course{.window = DelayWindow(own, blocks, options_.max_delay, processes()),
                .exchange = BlockExchange(share_.world, number, options_.max_delay),
                .stop_signal = stop_signal};
  std::vector<std::vector<int>> threads = cores_;
  if (processes() > 1) threads.emplace_back();  // it takes messages, on any core
  run_workers(
      threads, [&](int thread) { thread < own ? work(static_cast<std::size_t>(thread), course) : receive(course); },
      [&] {
        course.window.cancel();
        course.exchange.wake();
      });
  return results(course.window.wait_for_end());
}

void ProximalSolver::work(std::size_t number, Course& course) {
  RowMargins& worker = workers_[number];
  worker.keep();
  const auto apply = [&](std::int64_t position) { worker.apply(block_at(position), slot_of(position).steps); };
  std::int64_t applied = 0;  // blocks before this one are part of the margins
  for (std::int64_t position = 0; course.window.start(position); ++position) {
    while (applied < position - options_.max_delay) apply(applied++);
    slot_of(position).parts[number] = worker.sums(block_at(position), bounds_, is_active_);
    if (!course.window.publish(position)) continue;
    BlockSums sums = sum_in_pairs(slot_of(position).parts);
    sums.wants_stop = course.stop_signal != nullptr && course.stop_signal->load() != 0;
    course.exchange.give(position, std::move(sums));
    arrive(position, course);
  }
  const std::int64_t end = course.window.wait_for_end();
  while (applied < end) apply(applied++);
  scores_[number] = worker.score();
}

void ProximalSolver::receive(Course& course) {
  while (!course.window.is_over()) {
    if (const std::optional<std::int64_t> position = course.exchange.receive(course.window.finished()))
      arrive(*position, course);
  }
}

void ProximalSolver::arrive(std::int64_t position, Course& course) {
  if (!course.window.arrive(position)) return;
  const BlockSums total = course.exchange.take_total(position);
  step(position, total);
  if (total.wants_stop) course.window.stop_after(position);
  course.window.finish(position);
  if (course.window.is_over()) course.exchange.wake();
}

// Only one thread has a block's coordinates: they are in no other block.
void ProximalSolver::step(std::int64_t position, const BlockSums& total) {
  const CoordinateBlock& block = block_at(position);
  std::vector<double>& steps = slot_of(position).steps;
  double violation = 0.0;
  auto number = total.numbers.begin();
  for (std::int64_t j = block.first; j < block.end; ++j) {
    double& step = steps[static_cast<std::size_t>(j - block.first)];
    step = 0.0;
    if (is_active_[static_cast<std::size_t>(j)] == 0) continue;
    const double gradient = *number++ / rows_;
    const double curvature = *number++ / rows_ / options_.step;
    step = step_coordinate(static_cast<std::size_t>(j), gradient, curvature, violation);
  }
  violations_[static_cast<std::size_t>(position)] = violation;
}

double ProximalSolver::step_coordinate(std::size_t j, double gradient, double curvature, double& violation) {
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

RowMargins::Score ProximalSolver::score_of_all(double norm) {
  const PassPart own{.score = sum_in_pairs(scores_), .norm = norm};
  if (processes() == 1) return own.score;
  std::vector<RowMargins::Score> scores;
  const std::string_view bytes(reinterpret_cast<const char*>(&own), sizeof own);
  for (const std::string& of_process : engine::process::all_gather(*share_.world, bytes)) {
    PassPart part;
    std::memcpy(&part, of_process.data(), sizeof part);
    ARBALEST_CHECK(part.norm == norm || std::isnan(norm));  // all processes have taken the same steps
    scores.push_back(part.score);
  }
  return sum_in_pairs(scores);
}

ProximalPass ProximalSolver::results(std::int64_t blocks) {
  ProximalPass pass{
      .is_whole = blocks == static_cast<std::int64_t>(blocks_.size()), .blocks = blocks, .step = options_.step};
  double norm = 0.0;
  for (std::int64_t j = 0; j < features(); ++j) {
    norm += std::abs(weights_[static_cast<std::size_t>(j)]);
    pass.non_zeros += weights_[static_cast<std::size_t>(j)] != 0.0 ? 1 : 0;
  }
  const RowMargins::Score score = score_of_all(norm);
  pass.loss = score.loss / rows_;
  pass.accuracy = static_cast<double>(score.right) / rows_;
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
  for (RowMargins& worker : workers_) worker.bring_back();
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
