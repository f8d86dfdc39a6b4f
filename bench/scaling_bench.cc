// How well do k learners in one process scale, and what does averaging cost? (Formulas: bench/README.md.)
#include <sys/wait.h>
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

// Trains for `duration` after a second of warming up.
Speed train(const std::vector<std::string>& overrides, double duration) {
  AveragingClock averaging;
  const jobs::JobOptions job = jobs::load_job("configs/lenet-digits.txtpb", overrides);
  jobs::Session session(job, "", jobs::Session::Purpose::kTraining, {.observer = &averaging});
  const auto run_for = [&](double seconds) {
    std::int64_t rounds = 0;
    scheduler::Progress progress;
    const auto start = Clock::now();
    for (; seconds_since(start) < seconds; ++rounds) {
      progress.add(session.scheduler().advance(session.training_ring(), 1));
    }
    progress.add(session.scheduler().drain());
    const double elapsed = seconds_since(start);
    return Speed{static_cast<double>(progress.examples) / elapsed, elapsed / static_cast<double>(rounds),
                 averaging.working / static_cast<double>(rounds), averaging.waiting / static_cast<double>(rounds)};
  };
  run_for(1.0);
  averaging.working = averaging.waiting = 0.0;
  return run_for(duration);
}

// Each job in a child process of its own, all at once; forked before this process has threads.
std::vector<Speed> in_processes(const std::vector<std::vector<std::string>>& jobs, double duration) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) engine::fail(engine::ErrorKind::kInternal, "pipe: {}", std::strerror(errno));
  for (const std::vector<std::string>& overrides : jobs) {
    const pid_t child = fork();
    if (child < 0) engine::fail(engine::ErrorKind::kInternal, "fork: {}", std::strerror(errno));
    if (child != 0) continue;
    const Speed speed = train(overrides, duration);
    const bool written = write(pipe_ends[1], &speed, sizeof speed) == sizeof speed;
    _exit(written ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::vector<Speed> speeds(jobs.size());
  for (Speed& speed : speeds) {
    if (read(pipe_ends[0], &speed, sizeof speed) != sizeof speed) {
      engine::fail(engine::ErrorKind::kInternal, "a child process failed");
    }
    wait(nullptr);
  }
  close(pipe_ends[0]);
  return speeds;
}

double independent_processes(const std::vector<int>& cores, double duration) {
  std::vector<std::vector<std::string>> jobs;
  for (const int core : cores) jobs.push_back({fmt::format("devices=cpu:{}", core), "learners.per_device.fixed=1"});
  double sum = 0.0;
  for (const Speed& speed : in_processes(jobs, duration)) sum += speed.images_per_second;
  return sum;
}

Speed one_process(int learners, double duration) {
  return in_processes({{"devices=cpu", fmt::format("learners.per_device.fixed={}", learners)}}, duration).front();
}

struct Summary {
  double median = 0.0;
  double spread = 0.0;  // (largest - smallest) / median
};

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = values[values.size() / 2];
  return {median, (values.back() - values.front()) / median};
}

int run(int turns, double duration) {
  const std::vector<int> cores = engine::host::allowed_cores();
  const auto learners = static_cast<int>(cores.size());
  std::vector<double> ratios, ours, theirs, averaging_shares, waiting_shares;
  for (int turn = 0; turn < turns; ++turn) {
    // Every other turn in the other order, so that a machine that drifts favors neither.
    double processes = turn % 2 == 0 ? independent_processes(cores, duration) : 0.0;
    const Speed speed = one_process(learners, duration);
    if (turn % 2 != 0) processes = independent_processes(cores, duration);
    theirs.push_back(processes);
    ours.push_back(speed.images_per_second);
    ratios.push_back(speed.images_per_second / processes);
    averaging_shares.push_back(speed.averaging_seconds / (learners * speed.round_seconds));
    waiting_shares.push_back(speed.averaging_waiting_seconds / speed.round_seconds);
    fmt::print(
        "turn {}: {} processes {:.0f}, {} learners {:.0f} images/s, ratio {:.3f}; averaging {:.2f} % of the cores' "
        "time\n",
        turn + 1, learners, processes, learners, speed.images_per_second, ratios.back(),
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
  int turns = 5;
  double seconds = 5.0;
  app.add_option("--turns", turns, "turns of each")->check(CLI::Range(1, 100));
  app.add_option("--seconds", seconds, "length of a turn")->check(CLI::Range(1.0, 600.0));
  CLI11_PARSE(app, argc, argv);
  return arbalest::bench::run(turns, seconds);
}
