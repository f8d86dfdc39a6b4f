// How well do k learners in one process scale, and what does averaging cost? (Formulas: bench/README.md.)
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/harness.h"
#include "engine/host/topology.h"
#include "engine/stream.h"
#include "engine/stream_observer.h"
#include "jobs/options/load_job.h"
#include "jobs/run/session.h"

namespace arbalest::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpSeconds = 1.0;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Adds up how long the averaging streams work and how long they wait.
class AveragingClock final : public engine::StreamObserver {
 public:
  void before_task(const engine::Stream& stream, const char*) override {
    if (stream.name().ends_with("averaging")) start_ = Clock::now();
  }
  void after_task(const engine::Stream& stream, const char* label) override {
    if (!stream.name().ends_with("averaging")) return;
    (std::strncmp(label, "wait", 4) == 0 ? waiting : working) += seconds_since(start_);
  }

  double working = 0.0;  // seconds; written by the one averaging thread, read when it has drained
  double waiting = 0.0;

 private:
  Clock::time_point start_;
};

struct Speed {
  double images_per_second = 0.0;
  double round_seconds = 0.0;
  double averaging_seconds = 0.0;          // of a round
  double averaging_waiting_seconds = 0.0;  // of a round
};

// A session that trains for a while whenever it is told to.
class Training {
 public:
  explicit Training(const std::vector<std::string>& overrides)
      : session_(jobs::load_job("configs/lenet-digits.txtpb", overrides), "", jobs::Session::Purpose::kTraining,
                 {.observer = &averaging_}) {}

  Speed run_for(double duration) {
    averaging_.working = averaging_.waiting = 0.0;
    double rounds = 0.0;
    scheduler::Progress progress;
    const auto start = Clock::now();
    for (; seconds_since(start) < duration; ++rounds) {
      progress.add(session_.scheduler().advance(session_.training_ring(), 1));
    }
    progress.add(session_.scheduler().drain());
    const double elapsed = seconds_since(start);
    return {static_cast<double>(progress.examples) / elapsed, elapsed / rounds, averaging_.working / rounds,
            averaging_.waiting / rounds};
  }

 private:
  AveragingClock averaging_;
  jobs::Session session_;
};

// A Training in a child process, which sleeps between its turns. Forked before this process has threads.
class Child {
 public:
  explicit Child(const std::vector<std::string>& overrides) {
    if (pipe(turns_) != 0 || pipe(speeds_) != 0) fail("pipe");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) serve(overrides);
    close(turns_[0]);
    close(speeds_[1]);
  }

  void start(double duration) {
    if (write(turns_[1], &duration, sizeof duration) != sizeof duration) fail("a child process");
  }
  Speed finish() {
    Speed speed;
    if (read(speeds_[0], &speed, sizeof speed) != sizeof speed) fail("a child process");
    return speed;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    engine::fail(engine::ErrorKind::kInternal, "{}: {}", what, std::strerror(errno));
  }

  [[noreturn]] void serve(const std::vector<std::string>& overrides) const {
    close(turns_[1]);  // so that the parent's end is seen
    Training training(overrides);
    double duration = 0.0;
    while (read(turns_[0], &duration, sizeof duration) == sizeof duration) {
      const Speed speed = training.run_for(duration);
      if (write(speeds_[1], &speed, sizeof speed) != sizeof speed) _exit(1);
    }
    _exit(0);
  }

  int turns_[2];   // to the child: seconds of a turn
  int speeds_[2];  // from it: what it reached
};

// One turn of all `children` at once; the sum of their speeds.
double run_all(std::vector<Child>& children, double duration) {
  for (Child& child : children) child.start(duration);
  double sum = 0.0;
  for (Child& child : children) sum += child.finish().images_per_second;
  return sum;
}

struct Summary {
  double median = 0.0;
  double spread = 0.0;  // (third quartile - first quartile) / median
};

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  return {median, (values[values.size() * 3 / 4] - values[values.size() / 4]) / median};
}

int run(int turns, double duration) {
  const std::vector<int> cores = engine::host::allowed_cores();
  const auto learners = static_cast<int>(cores.size());
  std::vector<Child> processes;
  for (const int core : cores) {
    processes.emplace_back(
        std::vector<std::string>{fmt::format("devices=cpu:{}", core), "learners.per_device.fixed=1"});
  }
  Child process({"devices=cpu", fmt::format("learners.per_device.fixed={}", learners)});
  const auto run_one = [&](double seconds) {
    process.start(seconds);
    return process.finish();
  };
  run_all(processes, kWarmUpSeconds);
  run_one(kWarmUpSeconds);
  std::vector<double> ratios, ours, theirs, averaging_shares, waiting_shares;
  for (int turn = 0; turn < turns; ++turn) {
    // Every other turn in the other order, so that a machine that drifts favors neither.
    double others = turn % 2 == 0 ? run_all(processes, duration) : 0.0;
    const Speed speed = run_one(duration);
    if (turn % 2 != 0) others = run_all(processes, duration);
    theirs.push_back(others);
    ours.push_back(speed.images_per_second);
    ratios.push_back(speed.images_per_second / others);
    averaging_shares.push_back(speed.averaging_seconds / (learners * speed.round_seconds));
    waiting_shares.push_back(speed.averaging_waiting_seconds / speed.round_seconds);
    fmt::print(stderr, "turn {}: {} processes {:.0f}, {} learners {:.0f} images/s, ratio {:.3f}; averaging {:.2f} %\n",
               turn + 1, learners, others, learners, speed.images_per_second, ratios.back(),
               100.0 * averaging_shares.back());
  }
  const auto summary = [](const std::vector<double>& values) {
    const Summary result = summarize(values);
    return nlohmann::ordered_json{{"median", result.median}, {"spread", result.spread}};
  };
  print_result("scaling", {{"learners", learners},
                           {"turns", turns},
                           {"seconds_per_turn", duration},
                           {"learners_images_per_second", summary(ours)},
                           {"processes_images_per_second", summary(theirs)},
                           {"ratio", summary(ratios)},
                           {"averaging_work_over_learners_times_round", summary(averaging_shares)},
                           {"averaging_wait_over_round", summary(waiting_shares)}});
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  CLI::App app{"k = cores learners in one process against as many independent one-learner processes; LeNet, b = 32."};
  int turns = 40;
  double seconds = 0.5;
  app.add_option("--turns", turns, "turns of each")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "length of a turn")->check(CLI::Range(0.1, 600.0));
  CLI11_PARSE(app, argc, argv);
  return arbalest::bench::run(turns, seconds);
}
