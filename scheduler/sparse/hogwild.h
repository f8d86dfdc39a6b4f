// Hogwild: stochastic gradient descent on single rows by several threads, which share one vector without locks (Niu,
// Recht, Re, Wright: "HOGWILD!: A lock-free approach to parallelizing stochastic gradient descent", NIPS 2011).
//
// For logistic regression, a step on row i with the learning rate gamma and p = 1 / (1 + exp(y_i (w x_i + b))):
//   w_j += gamma y_i p x_ij   for the features j of the row      b += gamma y_i p
// Weights are read and written by relaxed atomic operations, one by one. Two threads that write the same weight at once
// may lose one of the two changes. Every row changes the bias, so a thread adds its changes to the shared bias only
// once in kBiasPeriod rows, lest all threads wait for one cache line.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"
#include "scheduler/sparse/logistic_loss.h"

namespace arbalest::scheduler {

struct HogwildOptions {
  bool bias = true;
  std::uint64_t seed = 1;  // of the order of the rows
};

struct HogwildEpoch {
  bool is_whole = true;   // false: a stop signal ended it early
  std::int64_t rows = 0;  // trained
};

class HogwildSolver {
 public:
  static constexpr int kBiasPeriod = 64;

  // `rows` must outlive the solver. `cores`: by thread, the cores that it is pinned to; empty: it floats.
  HogwildSolver(const dataflow::SparseRows& rows, const HogwildOptions& options, std::vector<std::vector<int>> cores);

  // Trains on every row once, in an order that depends on the seed and the epoch; each thread takes one part of it.
  // Epochs are numbered from 0. `stop_signal` (or null) becomes non-zero to end the epoch early.
  HogwildEpoch epoch(std::uint64_t number, float learning_rate, const std::atomic<int>* stop_signal = nullptr);

  const LinearModel& model() const noexcept { return model_; }

 private:
  struct Part;

  void work(std::span<const std::int64_t> rows, float learning_rate, const std::atomic<int>* stop_signal, Part& part);
  double margin_of(std::size_t row, float bias);
  void step(std::size_t row, float change);

  const dataflow::SparseRows& rows_;
  HogwildOptions options_;
  std::vector<std::vector<int>> cores_;
  LinearModel model_;
};

}  // namespace arbalest::scheduler
