// Measures methods of the all-reduce in turns, on all ranks of a world, and prints rows on rank 0.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/all_reduce/measured_transport.h"
#include "bench/support/harness.h"
#include "engine/process/world.h"

namespace arbalest::bench {

struct Method;

struct Measurements {
  int turns = 15;
  engine::process::AllReduceOptions options = {};
};

class Measuring {
 public:
  // The first two must outlive this.
  Measuring(engine::process::World& world, MeasuredTransport& transport, const Measurements& measurements)
      : world_(world), transport_(transport), measurements_(measurements) {}

  // The methods take turns, and memcpy with them. Prints a row.
  void measure(std::size_t elements);

 private:
  // Seconds of a call: the slowest rank's, by contender and turn: the methods, and memcpy. Filled on rank 0.
  using Seconds = std::vector<std::vector<double>>;
  using Sum = std::unique_ptr<engine::process::PreparedAllReduce>;

  Sum prepare(const Method& method, std::span<float> values);
  double seconds_of(const Method& method, engine::process::PreparedAllReduce& sum, int calls);
  // Calls `work` on all ranks at the same time.
  double seconds_of(const std::function<void()>& work, int calls);
  Seconds slowest(const Seconds& own);
  void report(std::size_t elements, int calls, const Seconds& seconds);

  engine::process::World& world_;
  MeasuredTransport& transport_;
  const Measurements measurements_;
};

}  // namespace arbalest::bench
