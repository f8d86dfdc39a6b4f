// Delayed block proximal gradient: l1-regularized logistic regression over sparse rows.
//
//   minimize F(w) = (1/n) sum_i log(1 + exp(-y_i (w x_i + b))) + l1 |w|_1
//
// Every worker owns a part of the rows, and their margins y_i (w x_i + b). A pass visits all blocks of coordinates in a
// random order. For a block each worker computes, over its rows with p = 1 / (1 + exp(margin)),
//   G_j = (1/n) sum_i -y_i p_i x_ij      U_j = (1/n) sum_i min(p_i (1 - p_i) exp(|x_ij| delta_j), 1/4) x_ij^2
// The last worker of a block adds the parts in the workers' order and steps (sma/proximal_step.h); then each worker
// brings its own margins up to date. With max_delay tau the gradient of a block misses exactly the steps of the tau
// blocks before it, so that a result does not depend on the workers' speed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"
#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/delay_window.h"
#include "scheduler/sparse/logistic_loss.h"

namespace arbalest::scheduler {

struct ProximalOptions {
  int blocks = 1;     // at most the coordinates
  int max_delay = 0;  // below `blocks`
  double l1 = 0.0;    // at least 0; the bias is not penalized
  double step = 1.0;  // eta, in (0, 1]
  bool bias = true;   // whether there is one
  std::uint64_t seed = 1;
  double first_bound = 1.0;  // delta of a coordinate at the start, and its largest value
  double largest_bound = 5.0;
};

struct ProximalPass {
  bool is_whole = true;        // false: a stop signal ended it early
  bool is_undone = false;      // it has raised the objective; the other numbers are those of the pass before
  std::int64_t blocks = 0;     // done
  double loss = 0.0;           // mean over the training rows, after the pass
  double accuracy = 0.0;       // on the training rows
  double objective = 0.0;      // loss + l1 |w|_1
  double violation = 0.0;      // largest KKT violation seen in the pass
  double step = 1.0;           // eta of the pass
  std::int64_t non_zeros = 0;  // weights, without the bias
  std::int64_t active = 0;     // coordinates that the filter has not dropped
};

class ProximalSolver {
 public:
  // `cores`: by worker, the cores that it is pinned to; empty: it floats. `rows` is only read here.
  ProximalSolver(const dataflow::SparseRows& rows, const ProximalOptions& options, std::vector<std::vector<int>> cores);
  ~ProximalSolver();

  // Visits all blocks once. Passes are numbered from 0. A pass that raises the objective is undone, and halves the step
  // of the following passes: blocks with many correlated coordinates can overshoot. After some passes that lower the
  // objective a smaller step is doubled again. `stop_signal` (or null) becomes non-zero
  // to end the pass after the blocks that have begun.
  ProximalPass pass(std::uint64_t number, const std::atomic<int>* stop_signal = nullptr);

  // Lets the next pass visit all coordinates and drop none.
  void reset_filter();

  double bias() const;
  const std::vector<double>& coordinates() const noexcept { return weights_; }  // weights, then the bias if any
  LinearModel model() const;

 private:
  struct Worker;
  struct Slot;
  struct State {
    std::vector<double> weights;
    std::vector<double> bounds;
    std::vector<std::uint8_t> is_active;
  };

  std::int64_t features() const { return static_cast<std::int64_t>(weights_.size()) - (options_.bias ? 1 : 0); }
  Slot& slot_of(std::int64_t position);
  const CoordinateBlock& block_at(std::int64_t position) const;
  void work(int number, DelayWindow& window, const std::atomic<int>* stop_signal);
  void add_gradient(int number, std::int64_t position);
  void step(std::int64_t position);
  double step_coordinate(std::size_t j, double gradient, double curvature, double& violation);
  void apply(Worker& worker, std::int64_t position);
  ProximalPass results(std::int64_t blocks);
  // Undoes a pass that has raised the objective, and chooses the next step.
  ProximalPass judged(const ProximalPass& pass);
  void undo();

  ProximalOptions options_;
  std::vector<std::vector<int>> cores_;
  std::vector<CoordinateBlock> blocks_;
  std::vector<std::int64_t> order_;  // of the pass under way
  std::vector<double> weights_;
  std::vector<double> bounds_;
  std::vector<std::uint8_t> is_active_;
  std::vector<double> violations_;  // by position in the order
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Slot> slots_;  // a ring of max_delay + 1
  double rows_ = 0.0;
  double filter_margin_;
  double largest_step_;
  int falls_ = 0;  // passes in a row that have lowered the objective
  // The last pass that was not undone. Before any pass all margins are 0.
  ProximalPass last_{.loss = logistic_loss(0.0), .objective = logistic_loss(0.0)};
  State before_;  // before the pass under way
};

}  // namespace arbalest::scheduler
