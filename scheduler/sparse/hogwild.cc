#include "scheduler/sparse/hogwild.h"

#include <utility>

#include "engine/host/relaxed.h"
#include "scheduler/sparse/coordinate_blocks.h"
#include "scheduler/sparse/order_streams.h"
#include "scheduler/sparse/worker_threads.h"

namespace arbalest::scheduler {

using engine::host::load_relaxed;
using engine::host::store_relaxed;

// One thread's count of rows. It has a cache line of its own.
struct alignas(128) HogwildSolver::Part {
  std::int64_t rows = 0;
};

HogwildSolver::HogwildSolver(const dataflow::SparseRows& rows, const HogwildOptions& options,
                             std::vector<std::vector<int>> cores)
    : rows_(rows), options_(options), cores_(std::move(cores)) {
  model_.weights.assign(static_cast<std::size_t>(rows.columns), 0.0F);
}

HogwildEpoch HogwildSolver::epoch(std::uint64_t number, float learning_rate, const std::atomic<int>* stop_signal) {
  const std::vector<std::int64_t> order = random_order(rows_.rows(), options_.seed, kRowOrder, number);
  std::vector<Part> parts(cores_.size());
  const auto threads = cores_.size();
  const auto first_of = [&](std::size_t thread) { return order.size() * thread / threads; };
  run_workers(
      cores_,
      [&](int worker) {
        const auto w = static_cast<std::size_t>(worker);
        const std::span all(order);
        work(all.subspan(first_of(w), first_of(w + 1) - first_of(w)), learning_rate, stop_signal, parts[w]);
      },
      [] {});
  HogwildEpoch done;
  for (const Part& part : parts) done.rows += part.rows;
  done.is_whole = done.rows == rows_.rows();
  return done;
}

void HogwildSolver::work(std::span<const std::int64_t> rows, float learning_rate, const std::atomic<int>* stop_signal,
                         Part& part) {
  float bias = load_relaxed(model_.bias);
  float change = 0.0F;  // of the bias, since it was loaded
  const auto exchange_bias = [&] {
    std::atomic_ref(model_.bias).fetch_add(std::exchange(change, 0.0F), std::memory_order_relaxed);
    bias = load_relaxed(model_.bias);
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % kBiasPeriod == 0) {
      if (stop_signal != nullptr && stop_signal->load(std::memory_order_relaxed) != 0) break;
      exchange_bias();
    }
    const auto row = static_cast<std::size_t>(rows[i]);
    const double wrong = wrong_probability(margin_of(row, bias + change));
    const auto step_size = static_cast<float>(learning_rate * rows_.labels[row] * wrong);
    step(row, step_size);
    if (options_.bias) change += step_size;
    ++part.rows;
  }
  exchange_bias();
}

double HogwildSolver::margin_of(std::size_t row, float bias) {
  double output = bias;
  for (auto e = static_cast<std::size_t>(rows_.starts[row]); e < static_cast<std::size_t>(rows_.starts[row + 1]); ++e) {
    output += double{load_relaxed(model_.weights[static_cast<std::size_t>(rows_.indices[e])])} * rows_.values[e];
  }
  return rows_.labels[row] * output;
}

void HogwildSolver::step(std::size_t row, float change) {
  for (auto e = static_cast<std::size_t>(rows_.starts[row]); e < static_cast<std::size_t>(rows_.starts[row + 1]); ++e) {
    float& weight = model_.weights[static_cast<std::size_t>(rows_.indices[e])];
    store_relaxed(weight, load_relaxed(weight) + change * rows_.values[e]);
  }
}

}  // namespace arbalest::scheduler
