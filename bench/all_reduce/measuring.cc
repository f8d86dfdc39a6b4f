#include "bench/all_reduce/measuring.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace arbalest::bench {

using engine::process::AllReduceMethod;
using engine::process::PreparedAllReduce;

struct Method {
  const char* name;
  AllReduceMethod method = AllReduceMethod::kCanonical;
  bool is_blocking = false;
};

namespace {

constexpr int kWarmUpTurns = 3;
constexpr std::size_t kFloatsOfTurn = std::size_t{1} << 21;

// The product's all-reduce is the first, MPI's blocking one the last.
constexpr Method kMethods[] = {
    {.name = "canonical"},
    {.name = "MPI_Iallreduce, polled", .method = AllReduceMethod::kLibrary},
    {.name = "MPI_Allreduce, blocking", .method = AllReduceMethod::kLibrary, .is_blocking = true}};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int calls_for(std::size_t elements) {
  return static_cast<int>(std::clamp<std::size_t>(kFloatsOfTurn / elements, 1, 200));
}

std::vector<double> ratios(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios(over.size());
  std::ranges::transform(over, under, ratios.begin(), std::divides<>());
  return ratios;
}

}  // namespace

Measuring::Sum Measuring::prepare(const Method& method, std::span<float> values) {
  world_.set_all_reduce(method.method, measurements_.options);
  return world_.prepare_all_reduce(values);
}

double Measuring::seconds_of(const Method& method, PreparedAllReduce& sum, int calls) {
  world_.barrier();
  transport_.set_blocking(method.is_blocking);
  return seconds_of(
      [&] {
        sum.start(world_.next_turn());
        sum.wait();
      },
      calls);
}

double Measuring::seconds_of(const std::function<void()>& work, int calls) {
  world_.barrier();
  const double begin = seconds_now();
  for (int call = 0; call < calls; ++call) work();
  return (seconds_now() - begin) / calls;
}

void Measuring::measure(std::size_t elements) {
  std::vector<float> values(elements);  // zeros, which stay zeros however often they are summed
  std::vector<float> copy(elements);
  volatile float sink = 0.0F;  // keeps the copies
  const std::function<void()> copying = [&] {
    std::memcpy(copy.data(), values.data(), values.size() * sizeof(float));
    sink = copy[values.size() / 2];
  };
  std::vector<Sum> sums;
  for (const Method& method : kMethods) sums.push_back(prepare(method, values));
  const int calls = calls_for(elements);
  Seconds own(sums.size() + 1);
  for (int turn = -kWarmUpTurns; turn < measurements_.turns; ++turn) {
    for (std::size_t m = 0; m < own.size(); ++m) {
      const double seconds = m < sums.size() ? seconds_of(kMethods[m], *sums[m], calls) : seconds_of(copying, calls);
      if (turn >= 0) own[m].push_back(seconds);
    }
  }
  const Seconds seconds = slowest(own);
  if (world_.rank() == 0) report(elements, calls, seconds);
}

Measuring::Seconds Measuring::slowest(const Seconds& own) {
  Seconds seconds = own;
  for (std::vector<double>& turns : seconds) {
    const std::string bytes(reinterpret_cast<const char*>(turns.data()), turns.size() * sizeof(double));
    for (const std::string& of_rank : world_.gather(bytes)) {
      std::vector<double> other(turns.size());
      std::memcpy(other.data(), of_rank.data(), of_rank.size());
      for (std::size_t i = 0; i < turns.size(); ++i) turns[i] = std::max(turns[i], other[i]);
    }
  }
  return seconds;
}

void Measuring::report(std::size_t elements, int calls, const Seconds& seconds) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const double sent_bytes = 2.0 * 4.0 * static_cast<double>(elements) * (world_.size() - 1) / world_.size();
  for (std::size_t m = 0; m < seconds.size(); ++m) {
    const bool is_copy = m == std::size(kMethods);
    const char* const name = is_copy ? "memcpy" : kMethods[m].name;
    const Summary summary = summarize(seconds[m]);
    nlohmann::ordered_json row = {
        {"name", name}, {"seconds", to_json(summary)}, {"fastest_seconds", std::ranges::min(seconds[m])}};
    const Summary ratio = summarize(ratios(seconds[std::size(kMethods) - 1], seconds[m]));
    row["speed_over_blocking"] = to_json(ratio);
    const double bytes = is_copy ? 4.0 * static_cast<double>(elements) : sent_bytes;
    row["gigabytes_per_second"] = bytes / summary.median / 1e9;
    rows.push_back(row);
    fmt::print(stderr, "{:>9} floats  {:<24} {:10.1f} us  {:5.2f} of the speed of MPI_Allreduce  spread {:.1f} %\n",
               elements, name, summary.median * 1e6, ratio.median, summary.spread() * 100.0);
  }
  print_result("all-reduce between processes beside MPI's", {{"processes", world_.size()},
                                                             {"elements", elements},
                                                             {"calls_per_turn", calls},
                                                             {"chunk", measurements_.options.chunk},
                                                             {"window", measurements_.options.window},
                                                             {"turns", measurements_.turns},
                                                             {"results", rows}});
}

}  // namespace arbalest::bench
