// Does a run that tunes its number of learners adapt to another load that starts and ends? (bench/README.md)
#include <algorithm>
#include <chrono>
#include <map>
#include <stop_token>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "engine/host/topology.h"
#include "jobs/run/learners/tuned_changes.h"
#include "jobs/run/session.h"

namespace arbalest::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Arguments {
  JobArguments job;
  double seconds = 40.0;
  int turns = 3;
};

// Threads that compute until the object is destroyed.
class Load {
 public:
  explicit Load(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back(&spin);
  }

 private:
  static void spin(const std::stop_token& stop) {
    volatile double value = 1.0;
    while (!stop.stop_requested()) value = value * 1.0000001;
  }

  std::vector<std::jthread> threads_;
};

struct Phase {
  const char* name;
  bool is_loaded;
};
constexpr Phase kPhases[] = {{"alone", false}, {"with load", true}, {"alone again", false}};

// The runs of one job: one with a search, and several with fixed numbers of learners.
class Runs {
 public:
  explicit Runs(const Arguments& arguments) : arguments_(arguments) {
    job_ = arguments.job.load({"devices=cpu", "learners.per_device.auto={}"});
  }

  const jobs::JobOptions& job() const { return job_; }

  nlohmann::ordered_json follow() {
    jobs::JobOptions job = job_;
    const auto session = open(job);
    jobs::TunedChanges changes(job, *session, jobs::first_guess(job));
    space_ = changes.space();
    nlohmann::ordered_json phases;
    for (const Phase& phase : kPhases) {
      const Load load(phase.is_loaded ? load_threads() : 0);
      double images = 0.0;
      int resizes = 0;
      const Clock::time_point start = Clock::now();
      while (seconds_since(start) < arguments_.seconds) {
        if (const auto change = changes.due(session->scheduler().batches());
            change && change->to.front() != session->scheduler().learners()) {
          session->scheduler().drain();
          session->resize(change->to);
          ++resizes;
        }
        const Clock::time_point round = Clock::now();
        const scheduler::Progress progress = session->scheduler().advance(session->training_ring(), 1);
        changes.observe(progress, seconds_since(round));
        images += static_cast<double>(progress.examples);
      }
      const double rate = images / seconds_since(start);
      fmt::print(stderr, "{}: {:.0f} images/s, {} learners after {} resizes\n", phase.name, rate,
                 session->scheduler().learners(), resizes);
      phases.push_back({{"phase", phase.name},
                        {"load_threads", phase.is_loaded ? load_threads() : 0},
                        {"images_per_second", rate},
                        {"learners", session->scheduler().learners()},
                        {"resizes", resizes}});
    }
    return phases;
  }

  // Measures every number of learners once, without and with the load.
  void measure_fixed() {
    jobs::JobOptions job = job_;
    const auto session = open(job);
    for (const bool is_loaded : {false, true}) {
      const Load load(is_loaded ? load_threads() : 0);
      for (const autotuner::Configuration& at : space_) {
        const std::vector<int> counts{at.learners};
        session->prepare(counts);
        session->scheduler().drain();
        session->resize(counts);
        run(*session, kSettlingSeconds);
        fixed_[is_loaded][at.learners].push_back(run(*session, arguments_.seconds / kFixedPerPhase));
      }
    }
  }

  // Returns the number of learners that is fastest over all turns, and its images/s by turn.
  std::pair<int, std::vector<double>> best(bool is_loaded) const {
    const auto& fixed = fixed_.at(is_loaded);
    return *std::ranges::max_element(fixed, {}, [](const auto& of) { return summarize(of.second).median; });
  }

  nlohmann::ordered_json fixed() const {
    nlohmann::ordered_json rows;
    for (const auto& [is_loaded, by_learners] : fixed_) {
      for (const auto& [learners, rates] : by_learners) {
        rows.push_back({{"load_threads", is_loaded ? load_threads() : 0},
                        {"learners", learners},
                        {"images_per_second", to_json(summarize(rates))}});
      }
    }
    return rows;
  }

 private:
  static constexpr double kSettlingSeconds = 0.5;
  static constexpr double kFixedPerPhase = 4.0;  // measurements of a fixed number in the time of a phase

  static int load_threads() { return std::max(1, engine::host::usable_cores() / 2); }

  std::unique_ptr<jobs::Session> open(jobs::JobOptions& job) const {
    return jobs::open_session(job, arguments_.job.data_root, {});
  }

  static double run(jobs::Session& session, double seconds) {
    double images = 0.0;
    const Clock::time_point start = Clock::now();
    while (seconds_since(start) < seconds) {
      images += static_cast<double>(session.scheduler().advance(session.training_ring(), 1).examples);
    }
    return images / seconds_since(start);
  }

  const Arguments& arguments_;
  jobs::JobOptions job_;
  std::vector<autotuner::Configuration> space_;
  std::map<bool, std::map<int, std::vector<double>>> fixed_;  // images/s by load and learners
};

int run(const Arguments& arguments) {
  Runs runs(arguments);
  nlohmann::ordered_json turns;
  for (int turn = 0; turn < arguments.turns; ++turn) {
    turns.push_back(runs.follow());
    runs.measure_fixed();
  }
  nlohmann::ordered_json fields{{"job", runs.job().name}, {"batch_size", runs.job().training.batch_size}};
  for (std::size_t p = 0; p < std::size(kPhases); ++p) {
    const auto [learners, rates] = runs.best(kPhases[p].is_loaded);
    std::vector<double> shares;
    for (std::size_t turn = 0; turn < rates.size(); ++turn) {
      shares.push_back(turns[turn][p]["images_per_second"].get<double>() / rates[turn]);
    }
    const Summary share = summarize(shares);
    const Summary fixed = summarize(rates);
    fmt::print(stderr, "{}: {:.1f} % of the best fixed number, {} learners with {:.0f} images/s (spread {:.1f} %)\n",
               kPhases[p].name, 100.0 * share.median, learners, fixed.median, 100.0 * fixed.spread());
    fields["phases"].push_back({{"phase", kPhases[p].name},
                                {"best_fixed_learners", learners},
                                {"best_fixed_images_per_second", to_json(fixed)},
                                {"share_of_best_fixed", to_json(share)},
                                {"target_share", 0.9}});
  }
  const bool best_differs = runs.best(true).first != runs.best(false).first;
  if (!best_differs) {
    fmt::print(stderr, "the best fixed number is the same with the load and without: there was nothing to follow\n");
  }
  fields["best_fixed_learners_differ"] = best_differs;
  fields["runs"] = turns;
  fields["fixed"] = runs.fixed();
  print_result("competing load", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  arbalest::bench::Arguments arguments;
  CLI::App app("Does a run that finds its number of learners follow a load that takes half the cores?");
  arbalest::bench::add_job(app, arguments.job);
  app.add_option("--seconds", arguments.seconds, "Length of each of the three phases")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 3600.0));
  app.add_option("--turns", arguments.turns, "Runs, and measurements of all fixed numbers")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  return arbalest::bench::run_program(app, argc, argv, [&] { return arbalest::bench::run(arguments); });
}
