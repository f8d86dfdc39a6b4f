// How well do k learners in one process scale, what is the effect of core lending, and what does averaging cost?
// (Formulas: bench/README.md.)
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "engine/host/topology.h"
#include "engine/stream.h"
#include "engine/stream_observer.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWarmUpSeconds = 1.0;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Sums the times in which the averaging streams work and wait.
class AveragingClock final : public engine::StreamObserver {
 public:
  void before_task(const engine::Stream& stream, const engine::TaskInfo&) override {
    if (stream.role() == engine::StreamRole::kSynchronization) start_ = Clock::now();
  }
  void after_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    if (stream.role() != engine::StreamRole::kSynchronization) return;
    (task.kind == engine::TaskKind::kWait ? waiting : working) += seconds_since(start_);
  }

  double working = 0.0;  // seconds; written by the averaging thread, read after the stream has drained
  double waiting = 0.0;

 private:
  Clock::time_point start_;
};

struct Speed {
  double images_per_second = 0.0;
  double round_seconds = 0.0;
  double averaging_seconds = 0.0;          // per round
  double averaging_waiting_seconds = 0.0;  // per round
};

// A session that trains for a given time per call.
class Training {
 public:
  Training(const JobArguments& job, const std::vector<std::string>& changes, bool lend_cores)
      : session_(job.load(changes), job.data_root, {.observer = &averaging_, .lend_cores = lend_cores}) {}

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

// A Training in a child process that sleeps between its turns. The child is forked before this process has threads.
class Child {
 public:
  explicit Child(const JobArguments& job, const std::vector<std::string>& changes, bool lend_cores = true) {
    if (pipe(turns_) != 0 || pipe(speeds_) != 0) fail("pipe");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) serve(job, changes, lend_cores);
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
  Speed run(double duration) {
    start(duration);
    return finish();
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    engine::fail(engine::ErrorKind::kInternal, "{}: {}", what, std::strerror(errno));
  }

  [[noreturn]] void serve(const JobArguments& job, const std::vector<std::string>& changes, bool lend_cores) const {
    close(turns_[1]);  // otherwise the child would not notice the end of the parent
    Training training(job, changes, lend_cores);
    double duration = 0.0;
    while (read(turns_[0], &duration, sizeof duration) == sizeof duration) {
      const Speed speed = training.run_for(duration);
      if (write(speeds_[1], &speed, sizeof speed) != sizeof speed) _exit(1);
    }
    _exit(0);
  }

  int turns_[2];   // to the child: seconds of a turn
  int speeds_[2];  // from the child: its result
};

// Runs one turn of all `children` concurrently and returns the sum of their speeds.
double run_all(std::vector<Child>& children, double duration) {
  for (Child& child : children) child.start(duration);
  double sum = 0.0;
  for (Child& child : children) sum += child.finish().images_per_second;
  return sum;
}

// Results of one turn of every contender.
struct Turn {
  double processes = 0.0;  // sum of images/s over all processes
  Speed learners;
  Speed without_lending;
};

// The benchmark for k equal to the number of cores of this machine.
class Contest {
 public:
  explicit Contest(const JobArguments& job)
      : one_process_{"devices=cpu", fmt::format("learners.per_device.fixed={}", learners())},
        lending_(job, one_process_),
        not_lending_(job, one_process_, false) {
    for (const int core : cores_) {
      processes_.emplace_back(
          job, std::vector<std::string>{fmt::format("devices=cpu:{}", core), "learners.per_device.fixed=1"});
    }
  }

  int learners() const { return static_cast<int>(cores_.size()); }

  Turn run(double duration, bool backwards) {
    Turn turn;
    const std::function<void()> contenders[] = {[&] { turn.processes = run_all(processes_, duration); },
                                                [&] { turn.learners = lending_.run(duration); },
                                                [&] { turn.without_lending = not_lending_.run(duration); }};
    for (std::size_t i = 0; i < std::size(contenders); ++i) {
      contenders[backwards ? std::size(contenders) - 1 - i : i]();
    }
    return turn;
  }

 private:
  const std::vector<int> cores_ = engine::host::allowed_cores();
  const std::vector<std::string> one_process_;
  std::vector<Child> processes_;
  Child lending_;
  Child not_lending_;
};

// Summarizes `value(turn)` over all turns.
template <typename Value>
nlohmann::ordered_json summary(const std::vector<Turn>& turns, const Value& value) {
  std::vector<double> values;
  for (const Turn& turn : turns) values.push_back(value(turn));
  return to_json(summarize(std::move(values)));
}

int run(const JobArguments& job, int count, double duration) {
  job.load();  // reports an invalid job once, not from every process
  Contest contest(job);
  const int learners = contest.learners();
  const auto theirs = [](const Turn& turn) { return turn.processes; };
  const auto ours = [](const Turn& turn) { return turn.learners.images_per_second; };
  const auto without = [](const Turn& turn) { return turn.without_lending.images_per_second; };
  const auto ratio = [&](const Turn& turn) { return ours(turn) / theirs(turn); };
  const auto ratio_without = [&](const Turn& turn) { return without(turn) / theirs(turn); };
  const auto gain = [&](const Turn& turn) { return ours(turn) / without(turn); };
  const auto averaging = [&](const Turn& turn) {
    return turn.learners.averaging_seconds / (learners * turn.learners.round_seconds);
  };
  const auto waiting = [](const Turn& turn) {
    return turn.learners.averaging_waiting_seconds / turn.learners.round_seconds;
  };

  contest.run(kWarmUpSeconds, false);
  std::vector<Turn> turns;
  for (int i = 0; i < count; ++i) {
    // The order of turns alternates, so that a drift of the machine favors none.
    const Turn& turn = turns.emplace_back(contest.run(duration, i % 2 != 0));
    fmt::print(stderr,
               "turn {}: {} processes {:.0f}, {} learners {:.0f} images/s, ratio {:.3f}; without lending {:.0f}, ratio "
               "{:.3f}; averaging works {:.2f} % of the cores' time and waits {:.1f} % of a round\n",
               i + 1, learners, theirs(turn), learners, ours(turn), ratio(turn), without(turn), ratio_without(turn),
               100.0 * averaging(turn), 100.0 * waiting(turn));
  }
  print_result("scaling", {{"job", job.file},
                           {"set", job.overrides},
                           {"learners", learners},
                           {"turns", count},
                           {"seconds_per_turn", duration},
                           {"processes_images_per_second", summary(turns, theirs)},
                           {"learners_images_per_second", summary(turns, ours)},
                           {"learners_without_lending_images_per_second", summary(turns, without)},
                           {"ratio", summary(turns, ratio)},
                           {"ratio_without_lending", summary(turns, ratio_without)},
                           {"lending_gain", summary(turns, gain)},
                           {"averaging_work_over_learners_times_round", summary(turns, averaging)},
                           {"averaging_wait_over_round", summary(turns, waiting)}});
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  CLI::App app{
      "k = cores learners in one process, with and without core lending, against as many independent one-learner "
      "processes; unless told otherwise LeNet, b = 32."};
  arbalest::bench::JobArguments job;
  int turns = 40;
  double seconds = 0.5;
  arbalest::bench::add_job(app, job);
  app.add_option("--turns", turns, "turns of each of the three")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "length of a turn")->check(CLI::Range(0.1, 600.0));
  return arbalest::bench::run_program(app, argc, argv, [&] { return arbalest::bench::run(job, turns, seconds); });
}
