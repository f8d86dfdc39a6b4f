// Measures the cost of finding the number of learners in a run. (Formulas: bench/README.md.)
#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "train/learners/tuned_changes.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  JobArguments job;
  int from = 2;
  int to = 4;
  int turns = 21;
};

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<jobs::Session> open(jobs::JobOptions& job, const std::string& data_root) {
  return jobs::open_session(job, data_root, {});
}

// A turn has three parts with equally many rounds: with one number of learners, with a resize in the middle, and with
// the other number. Each part ends drained. So the cost of the resize is the time of the middle part minus half the sum
// of the other parts.
class Resizing {
 public:
  Resizing(jobs::JobOptions job, const std::string& data_root) : session_(open(job, data_root)) {}

  void begin_at(int learners) {
    session_->prepare(std::vector<int>{learners});
    session_->resize(std::vector<int>{learners});
    rounds(kRounds);
    session_->scheduler().drain();
  }

  // Returns the cost of a resize in rounds. The learners are new, as for a number that was not tried just before.
  double turn(int to) {
    session_->release_idle();
    const double before = plain();
    const std::vector<int> counts{to};
    session_->prepare(counts);  // a run does this during training
    const double with_resize = seconds_of([&] {
      rounds(kRounds);
      session_->scheduler().drain();
      session_->resize(counts);
      rounds(kRounds);
      session_->scheduler().drain();
    });
    const double after = plain();
    return (with_resize - (before + after) / 2) / ((before + after) / (4 * kRounds));
  }

 private:
  static constexpr int kRounds = 10;

  void rounds(int count) { session_->scheduler().advance(session_->training_ring(), count); }
  double plain() {
    return seconds_of([&] {
      rounds(2 * kRounds);
      session_->scheduler().drain();
    });
  }

  std::unique_ptr<jobs::Session> session_;
};

nlohmann::ordered_json measure_resizes(const Arguments& arguments, const jobs::JobOptions& job) {
  Resizing resizing(job, arguments.job.data_root);
  resizing.begin_at(arguments.from);
  std::vector<double> costs;
  for (int turn = 0; turn < arguments.turns; ++turn) {
    costs.push_back(resizing.turn(turn % 2 == 0 ? arguments.to : arguments.from));
  }
  const Summary cost = summarize(costs);
  fmt::print(stderr, "a resize between {} and {} learners costs {:.2f} rounds (quartiles {:.2f} to {:.2f})\n",
             arguments.from, arguments.to, cost.median, cost.first_quartile, cost.third_quartile);
  return {{"from", arguments.from},
          {"to", arguments.to},
          {"turns", arguments.turns},
          {"rounds", cost.median},
          {"first_quartile", cost.first_quartile},
          {"third_quartile", cost.third_quartile},
          {"target_rounds", 5.0}};
}

// Runs a whole job without evaluation, which tunes its number of learners.
nlohmann::ordered_json measure_probing(const Arguments& arguments, jobs::JobOptions job) {
  job.tunes_team = false;
  const auto session = open(job, arguments.job.data_root);
  scheduler::Scheduler& scheduler = session->scheduler();
  const auto end = static_cast<std::uint64_t>(job.training.max_epochs * session->training_order().batches_per_epoch());
  jobs::TunedChanges changes(job, *session, jobs::first_guess(job));
  std::map<int, double> rates;   // images/s by learners, as measured by the tuner
  std::map<int, double> probed;  // seconds
  double pauses = 0.0;
  double total = 0.0;
  int resizes = 0;
  while (scheduler.batches() < end) {
    const bool searches = !changes.is_settled();
    if (const auto change = changes.due(scheduler.batches()); change && change->to.front() != scheduler.learners()) {
      pauses += seconds_of([&] {
        scheduler.drain();
        session->resize(change->to);
      });
      ++resizes;
    }
    scheduler::Progress progress;
    const double seconds = seconds_of([&] { progress = scheduler.advance(session->training_ring(), 1); });
    total += seconds;
    if (searches) probed[scheduler.learners()] += seconds;
    pauses += seconds_of([&] { changes.observe(progress, seconds); });
    for (const auto& point : changes.tuner().tuner().curve().points()) {
      rates[point.configuration.learners] = point.rate;
    }
  }
  total += pauses;
  double best = 0.0;
  for (const auto& [learners, rate] : rates) best = std::max(best, rate);
  double lost = pauses;
  for (const auto& [learners, seconds] : probed) {
    if (rates.contains(learners)) lost += seconds * (1.0 - rates[learners] / best);
  }
  fmt::print(stderr, "finding {} learners with {} resizes took {:.2f} % of {:.1f} s\n", scheduler.learners(), resizes,
             100.0 * lost / total, total);
  return {{"epochs", job.training.max_epochs},
          {"learners", scheduler.learners()},
          {"resizes", resizes},
          {"seconds", total},
          {"pause_seconds", pauses},
          {"probing_share", lost / total},
          {"target_probing_share", 0.03}};
}

int run(const Arguments& arguments) {
  const jobs::JobOptions job =
      arguments.job.load({"devices=cpu", "training.max_epochs=10", "learners.per_device.auto={}"});
  nlohmann::ordered_json fields{{"job", job.name}, {"batch_size", job.training.batch_size}};
  fields["resize"] = measure_resizes(arguments, job);
  fields["probing"] = measure_probing(arguments, job);
  print_result("tuning", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  using arbalest::bench::Arguments;
  Arguments arguments;
  CLI::App program("What does it cost a run to find its number of learners?");
  arbalest::bench::add_job(program, arguments.job);
  program.add_option("--from", arguments.from, "Learners to resize from, and back to")->capture_default_str();
  program.add_option("--to", arguments.to, "Learners to resize to")->capture_default_str();
  program.add_option("--turns", arguments.turns, "Resizes")->capture_default_str();
  return arbalest::bench::run_program(program, argc, argv, [&] { return arbalest::bench::run(arguments); });
}
