// How fast is the all-reduce between processes beside MPI's own? (Formulas: bench/README.md.) Run it under mpirun.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "cli/exit_codes.h"
#include "engine/error.h"
#include "engine/process/world.h"

namespace arbalest::bench {
namespace {

using engine::process::AllReduceMethod;
using engine::process::AllReduceOptions;
using engine::process::Notify;
using engine::process::PreparedAllReduce;
using engine::process::Transport;
using engine::process::World;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The product's transport. Its sums can also be the blocking MPI_Allreduce: then the communication thread spins in MPI
// until the sum is there, and MPI is as fast as it can be.
class MeasuredTransport final : public Transport {
 public:
  explicit MeasuredTransport(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  void set_blocking(bool blocking) { blocking_ = blocking; }  // while no sum is under way

  int rank() const noexcept override { return transport_->rank(); }
  int size() const noexcept override { return transport_->size(); }
  int local_rank() const noexcept override { return transport_->local_rank(); }
  int local_size() const noexcept override { return transport_->local_size(); }
  const std::string& host(int rank) const override { return transport_->host(rank); }
  void send(int peer, int channel, std::span<const std::byte> bytes, Notify notify) override {
    transport_->send(peer, channel, bytes, notify);
  }
  void receive(int peer, int channel, std::span<std::byte> bytes, Notify notify) override {
    transport_->receive(peer, channel, bytes, notify);
  }
  void all_reduce_sum(std::span<const float> from, float* to, Notify notify) override {
    if (!blocking_) return transport_->all_reduce_sum(from, to, notify);
    MPI_Allreduce(from.data(), to, static_cast<int>(from.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    ended_.push_back(notify);
  }
  bool poll() override {
    if (ended_.empty()) return transport_->poll();
    const Notify notify = ended_.front();
    ended_.pop_front();
    notify.listener->on_message(notify.token, 0);
    return true;
  }
  void close() override { transport_->close(); }
  void abort(int exit_code) noexcept override { transport_->abort(exit_code); }

 private:
  const std::unique_ptr<Transport> transport_;
  bool blocking_ = false;
  std::deque<Notify> ended_;
};

struct Method {
  const char* name;
  AllReduceMethod method;
  bool is_blocking;
};

constexpr Method kMethods[] = {{"canonical", AllReduceMethod::kCanonical, false},
                               {"MPI_Iallreduce, polled", AllReduceMethod::kLibrary, false},
                               {"MPI_Allreduce, blocking", AllReduceMethod::kLibrary, true}};

// Seconds of a call: the slowest rank's, by contender and turn. Filled on rank 0.
using Seconds = std::vector<std::vector<double>>;

class Measuring {
 public:
  Measuring(World& world, MeasuredTransport& transport, std::span<const Method> methods, int turns,
            const AllReduceOptions& options)
      : world_(world), transport_(transport), methods_(methods), turns_(turns), options_(options) {}

  // The methods take turns, and memcpy with them.
  void measure(std::size_t elements) {
    std::vector<float> values(elements);  // zeros, which stay zeros however often they are summed
    std::vector<float> copy(elements);
    std::vector<std::unique_ptr<PreparedAllReduce>> sums;
    for (const Method& method : methods_) {
      world_.set_all_reduce(method.method, options_);
      sums.push_back(world_.prepare_all_reduce(values));
    }
    const int calls = static_cast<int>(std::clamp<std::size_t>((std::size_t{1} << 21) / elements, 1, 200));
    std::vector<std::vector<double>> own(methods_.size() + 1);
    for (int turn = -kWarmUpTurns; turn < turns_; ++turn) {
      for (std::size_t m = 0; m < own.size(); ++m) {
        const double seconds =
            m < sums.size() ? seconds_of(methods_[m], *sums[m], calls) : seconds_of_copy(values, copy, calls);
        if (turn >= 0) own[m].push_back(seconds);
      }
    }
    const Seconds seconds = slowest(own);
    if (world_.rank() == 0) report(elements, calls, seconds);
  }

 private:
  static constexpr int kWarmUpTurns = 3;

  double seconds_of(const Method& method, PreparedAllReduce& sum, int calls) {
    world_.barrier();
    transport_.set_blocking(method.is_blocking);
    world_.barrier();
    const double begin = seconds_now();
    for (int call = 0; call < calls; ++call) {
      sum.start(world_.next_turn());
      sum.wait();
    }
    return (seconds_now() - begin) / calls;
  }

  double seconds_of_copy(const std::vector<float>& values, std::vector<float>& copy, int calls) {
    world_.barrier();
    const double begin = seconds_now();
    for (int call = 0; call < calls; ++call) {
      std::memcpy(copy.data(), values.data(), values.size() * sizeof(float));
      sink_ = copy[values.size() / 2];
    }
    return (seconds_now() - begin) / calls;
  }

  Seconds slowest(const std::vector<std::vector<double>>& own) {
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
      const bool is_copy = m == methods_.size();
      const Summary summary = summarize(seconds[m]);
      nlohmann::ordered_json row = {{"name", is_copy ? "memcpy" : methods_[m].name}, {"seconds", to_json(summary)}};
      std::string comparison;
      if (methods_.back().is_blocking) {
        const Summary ratio = summarize(ratios(seconds[methods_.size() - 1], seconds[m]));
        row["speed_over_blocking"] = to_json(ratio);
        comparison = fmt::format("{:5.2f} of the speed of MPI_Allreduce  ", ratio.median);
      }
      const double bytes = is_copy ? 4.0 * static_cast<double>(elements) : sent_bytes;
      row["gigabytes_per_second"] = bytes / summary.median / 1e9;
      rows.push_back(row);
      fmt::print(stderr, "{:>9} floats  {:<24} {:10.1f} us  {}spread {:.1f} %\n", elements,
                 row["name"].get<std::string>(), summary.median * 1e6, comparison, summary.spread() * 100.0);
    }
    print_result("all-reduce between processes beside MPI's", {{"processes", world_.size()},
                                                               {"elements", elements},
                                                               {"calls_per_turn", calls},
                                                               {"chunk", options_.chunk},
                                                               {"window", options_.window},
                                                               {"turns", turns_},
                                                               {"results", rows}});
  }

  static std::vector<double> ratios(const std::vector<double>& over, const std::vector<double>& under) {
    std::vector<double> ratios(over.size());
    std::ranges::transform(over, under, ratios.begin(), std::divides<>());
    return ratios;
  }

  World& world_;
  MeasuredTransport& transport_;
  const std::span<const Method> methods_;
  const int turns_;
  const AllReduceOptions options_;
  volatile float sink_ = 0.0F;  // keeps the copies
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
  int turns = 15;
  bool only_ours = false;
  AllReduceOptions options;
  app.add_flag("--only-ours", only_ours, "measure neither of MPI's sums");
  app.add_option("--elements", sizes, "lengths of the vectors")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 28));
  app.add_option("--turns", turns, "turns of each method")->capture_default_str()->check(CLI::Range(3, 1000));
  app.add_option("--chunk", options.chunk, "floats of a message of ours")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{16}, std::size_t{1} << 28));
  app.add_option("--window", options.window, "messages of ours under way between two ranks")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{32}));
  return run_program(app, argc, argv, [&] {
    return run_in_world([&](World& world, MeasuredTransport& transport) {
      Measuring measuring(world, transport, std::span(kMethods).first(only_ours ? 1 : std::size(kMethods)), turns,
                          options);
      for (const std::size_t elements : sizes) measuring.measure(elements);
    });
  });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
