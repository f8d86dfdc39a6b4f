// How fast is the all-reduce between processes beside MPI's own? (Formulas: bench/README.md.) Run it under mpirun.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "bench/support/measured_transport.h"
#include "cli/exit_codes.h"
#include "engine/base/error.h"
#include "engine/process/world.h"

namespace arbalest::bench {
namespace {

using engine::process::AllReduceMethod;
using engine::process::PreparedAllReduce;
using engine::process::World;

struct Method {
  const char* name;
  AllReduceMethod method = AllReduceMethod::kCanonical;
  bool is_blocking = false;
};

struct Measurements {
  int turns = 15;
  engine::process::AllReduceOptions options = {};
};

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

// Measures methods of the all-reduce in turns, on all ranks of a world, and prints rows on rank 0.
class Measuring {
 public:
  // The first two must outlive this.
  Measuring(World& world, MeasuredTransport& transport, const Measurements& measurements)
      : world_(world), transport_(transport), measurements_(measurements) {}

  // The methods take turns, and memcpy with them. Prints a row.
  void measure(std::size_t elements) {
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

 private:
  // Seconds of a call: the slowest rank's, by contender and turn: the methods, and memcpy. Filled on rank 0.
  using Seconds = std::vector<std::vector<double>>;
  using Sum = std::unique_ptr<PreparedAllReduce>;

  Sum prepare(const Method& method, std::span<float> values) {
    world_.set_all_reduce(method.method, measurements_.options);
    return world_.prepare_all_reduce(values);
  }

  double seconds_of(const Method& method, PreparedAllReduce& sum, int calls) {
    world_.barrier();
    transport_.set_blocking(method.is_blocking);
    return seconds_of(
        [&] {
          sum.start(world_.next_turn());
          sum.wait();
        },
        calls);
  }

  // Calls `work` on all ranks at the same time.
  double seconds_of(const std::function<void()>& work, int calls) {
    world_.barrier();
    const double begin = seconds_now();
    for (int call = 0; call < calls; ++call) work();
    return (seconds_now() - begin) / calls;
  }

  Seconds slowest(const Seconds& own) {
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

  void report(std::size_t elements, int calls, const Seconds& seconds) {
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

  World& world_;
  MeasuredTransport& transport_;
  const Measurements measurements_;
};

// `measure` runs on every rank. An error ends all ranks.
int run_in_world(const std::function<void(World&, MeasuredTransport&)>& measure) {
  const auto launch = engine::process::find_launch([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!launch) engine::fail(engine::ErrorKind::kUsage, "start this program with mpirun -np 2 or more");
  std::vector<std::filesystem::path> directories = engine::process::module_directories();
  directories.push_back(directories.front().parent_path());  // of the build tree
  MeasuredTransport* transport = nullptr;
  World world(
      [&] {
        auto opened = std::make_unique<MeasuredTransport>(open_module_transport(*launch, directories));
        transport = opened.get();
        return opened;
      },
      {});
  try {
    measure(world, *transport);
    world.close();
    return 0;
  } catch (const engine::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    world.abort(cli::exit_code(error.kind()));
  }
}

int run(int argc, char** argv) {
  CLI::App app{"How fast is the all-reduce between processes beside MPI's own?"};
  std::vector<std::size_t> sizes{1000,    3000,      10'000,    30'000,    100'000,   300'000,
                                 430'000, 1'000'000, 3'000'000, 8'000'000, 25'000'000};
  Measurements measurements;
  app.add_option("--elements", sizes, "lengths of the vectors")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 28));
  app.add_option("--turns", measurements.turns, "turns of each method")
      ->capture_default_str()
      ->check(CLI::Range(3, 1000));
  app.add_option("--chunk", measurements.options.chunk, "floats of a message of ours")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{16}, std::size_t{1} << 28));
  app.add_option("--window", measurements.options.window, "messages of ours under way between two ranks")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{32}));
  return run_program(app, argc, argv, [&] {
    return run_in_world([&](World& world, MeasuredTransport& transport) {
      Measuring measuring(world, transport, measurements);
      for (const std::size_t elements : sizes) measuring.measure(elements);
    });
  });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
