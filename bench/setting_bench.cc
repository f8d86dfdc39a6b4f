// How much faster or slower is a run with a setting, or with a trace? (Formula: bench/README.md.)
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "engine/base/error.h"
#include "report/trace.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

struct Arguments {
  JobArguments job;
  std::vector<std::string> changes;
  bool trace = false;
  int turns = 21;
  int rounds = 100;
};

// Trains the same number of rounds in each turn.
class Run {
 public:
  Run(const jobs::JobOptions& job, const Arguments& arguments, const engine::DeviceOptions& device_options)
      : session_(job, arguments.job.data_root, device_options), rounds_(arguments.rounds) {}

  void turn() {
    scheduler::Progress progress = session_.scheduler().advance(session_.training_ring(), rounds_);
    progress.add(session_.scheduler().drain());
    examples_ = static_cast<double>(progress.examples);
  }

  jobs::Session& session() { return session_; }
  // Returns the number of examples per turn.
  double examples() const { return examples_; }

 private:
  jobs::Session session_;
  int rounds_;
  double examples_ = 0.0;
};

int run(const Arguments& arguments) {
  const jobs::JobOptions job = arguments.job.load();
  const jobs::JobOptions changed_job = arguments.job.load(arguments.changes);
  std::optional<jobs::Trace> trace;
  if (arguments.trace) {
    // A trace keeps spans up to a limit. This limit is enough for all turns. A trace's file is written at the end of a
    // run, but a benchmark has no such end.
    trace.emplace(std::filesystem::temp_directory_path() / fmt::format("setting-bench-{}.json", getpid()),
                  std::size_t{1} << 22U);
  }
  Run changed(changed_job, arguments, {.observer = trace ? &*trace : nullptr});
  if (trace) changed.session().training_ring().set_observer(&trace->training_input());
  Run plain(job, arguments, {});
  Run control(job, arguments, {});
  const std::vector<Measurement> results = measure_in_turns(
      {{"as it is", [&] { plain.turn(); }}, {"changed", [&] { changed.turn(); }}, {"control", [&] { control.turn(); }}},
      {.turns = arguments.turns});
  ARBALEST_CHECK(!trace || trace->dropped() == 0);
  const std::vector<double> examples{plain.examples(), changed.examples(), control.examples()};
  const auto speed = [&](std::size_t i) { return examples[i] / results[i].seconds; };

  nlohmann::ordered_json fields{{"job", job.name},
                                {"set", arguments.job.overrides},
                                {"change", arguments.changes},
                                {"traced", arguments.trace},
                                {"batch_size", job.training.batch_size}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    nlohmann::ordered_json contender = to_json(results[i]);
    contender["images_per_second"] = speed(i);
    fields["contenders"].push_back(contender);
    fmt::print(stderr, "{:<10} {:>9.0f} images/s  spread {:.1f} %\n", results[i].name, speed(i),
               100 * results[i].spread);
  }
  fields["speed_of_changed"] = speed(1) / speed(0);
  fields["speed_of_control"] = speed(2) / speed(0);
  print_result("setting", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  arbalest::bench::Arguments arguments;
  CLI::App app("How much faster or slower does a run become by a setting, or by being traced?");
  arbalest::bench::add_job(app, arguments.job);
  CLI::Option* change =
      app.add_option("--change", arguments.changes, "PATH=VALUE, of the changed run alone")->allow_extra_args(false);
  CLI::Option* trace = app.add_flag("--trace", arguments.trace, "Trace the changed run");
  app.add_option("--turns", arguments.turns, "Turns of each")->capture_default_str()->check(CLI::Range(3, 1000));
  app.add_option("--rounds", arguments.rounds, "Rounds of a turn")->capture_default_str()->check(CLI::Range(1, 10000));
  return arbalest::bench::run_program(app, argc, argv, [&] {
    if (change->empty() && trace->empty()) throw CLI::RequiredError("--change or --trace");
    return arbalest::bench::run(arguments);
  });
}
