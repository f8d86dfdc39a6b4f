// Delayed block proximal gradient: l1-regularized logistic regression over sparse rows.
//
//   minimize F(w) = (1/n) sum_i log(1 + exp(-y_i (w x_i + b))) + l1 |w|_1
//
// Every worker of every process owns a part of the rows, and their margins y_i (w x_i + b). A pass visits all blocks of
// coordinates in a random order. For a block each worker computes, over its rows with p = 1 / (1 + exp(margin)),
//   G_j = (1/n) sum_i -y_i p_i x_ij      U_j = (1/n) sum_i min(p_i (1 - p_i) exp(|x_ij| delta_j), 1/4) x_ij^2
// Every process adds the parts of its workers, gives the sums to all others, and adds those of all processes, both in
// pairs of neighbors. It steps (sma/proximal_step.h), and its workers bring their own margins up to date.
// With max_delay tau the gradient of a block misses exactly the steps of the tau blocks before it, so that a result
// does not depend on the speed of workers and processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"
#include "engine/process/world.h"
#include "scheduler/sparse/block_sums.h"
#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/logistic_loss.h"
#include "scheduler/sparse/proximal_options.h"
#include "scheduler/sparse/row_margins.h"

namespace arbalest::scheduler {

// The workers of one process among those of all.
struct ProximalShare {
  engine::process::World* world = nullptr;  // null: a single process
  int first = 0;                            // number of its first worker
  int workers = 0;                          // of all processes; 0: those of this one
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
  // `cores`: by worker of this process, the cores that it is pinned to; empty: it floats. `rows` is only read here. All
  // processes give the same rows and options, and keep a part of the rows.
  ProximalSolver(const dataflow::SparseRows& rows, const ProximalOptions& options, std::vector<std::vector<int>> cores,
                 const ProximalShare& share = {});

  // Visits all blocks once. Passes are numbered from 0. A pass that raises the objective is undone, and halves the step
  // of the following passes: blocks with many correlated coordinates can overshoot. After some passes that lower the
  // objective a smaller step is doubled again. `stop_signal` (or null) becomes non-zero to end the pass after at most
  // max_delay further blocks. With several processes this is a call of World's operations: all of them make it, and all
  // get the same result. A signal to one ends the pass for all. Throws kPeer if another one has died or failed.
  ProximalPass pass(std::uint64_t number, const std::atomic<int>* stop_signal = nullptr);

  // Lets the next pass visit all coordinates and drop none.
  void reset_filter();

  double bias() const;
  const std::vector<double>& coordinates() const noexcept { return weights_; }  // weights, then the bias if any
  LinearModel model() const;

 private:
  struct Course;
  // A block that is under way.
  struct Slot {
    std::vector<BlockSums> parts;  // by worker of this process
    std::vector<double> steps;     // [block size]
  };
  struct State {
    std::vector<double> weights;
    std::vector<double> bounds;
    std::vector<std::uint8_t> is_active;
  };

  std::int64_t features() const { return static_cast<std::int64_t>(weights_.size()) - (options_.bias ? 1 : 0); }
  Slot& slot_of(std::int64_t position);
  const CoordinateBlock& block_at(std::int64_t position) const;
  int processes() const { return share_.world == nullptr ? 1 : share_.world->size(); }
  void work(std::size_t number, Course& course);
  void receive(Course& course);
  // The sums of one more process for a block are here. If all are, steps, and finishes the block.
  void arrive(std::int64_t position, Course& course);
  void step(std::int64_t position, const BlockSums& total);
  double step_coordinate(std::size_t j, double gradient, double curvature, double& violation);
  // The sum of all processes' scores; `norm` is that of the weights, which all have. A call of World's operations.
  RowMargins::Score score_of_all(double norm);
  ProximalPass results(std::int64_t blocks);
  // Undoes a pass that has raised the objective, and chooses the next step.
  ProximalPass judged(const ProximalPass& pass);
  void undo();

  ProximalOptions options_;
  std::vector<std::vector<int>> cores_;
  ProximalShare share_;
  std::vector<CoordinateBlock> blocks_;
  std::vector<std::int64_t> order_;  // of the pass under way
  std::vector<double> weights_;
  std::vector<double> bounds_;
  std::vector<std::uint8_t> is_active_;
  std::vector<double> violations_;  // by position in the order
  std::vector<RowMargins> workers_;
  std::vector<RowMargins::Score> scores_;  // by worker, after the pass
  std::vector<Slot> slots_;                // a ring of max_delay + 1
  double rows_ = 0.0;                      // of all workers
  double filter_margin_;
  double largest_step_;
  int falls_ = 0;  // passes in a row that have lowered the objective
  // The last pass that was not undone. Before any pass all margins are 0.
  ProximalPass last_{.loss = logistic_loss(0.0), .objective = logistic_loss(0.0)};
  State before_;  // before the pass under way
};

}  // namespace arbalest::scheduler
