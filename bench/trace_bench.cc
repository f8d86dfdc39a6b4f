// What does a trace cost the run that is traced? (Formula: bench/README.md.)
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/harness.h"
#include "jobs/options/load_job.h"
#include "jobs/report/trace.h"
#include "jobs/run/session.h"

namespace arbalest::bench {
namespace {

struct Arguments {
  std::string job = "configs/lenet-digits.txtpb";
  std::string data_root = "data";
  std::vector<std::string> overrides;
  int turns = 41;
  int rounds = 100;
};

void train(jobs::Session& session, int rounds) {
  session.scheduler().advance(session.training_ring(), rounds);
  session.scheduler().drain();
}

int run(const Arguments& arguments) {
  const jobs::JobOptions job = jobs::load_job(arguments.job, arguments.overrides);
  // A span is kept until the room for it is used up; here there is enough for all turns. The file is written when a run
  // ends, which this one does not.
  jobs::Trace trace(std::filesystem::temp_directory_path() / fmt::format("trace-bench-{}.json", getpid()),
                    std::size_t{1} << 22U);
  jobs::Session traced(job, arguments.data_root, jobs::Session::Purpose::kTraining, {.observer = &trace});
  traced.training_ring().set_observer(&trace.training_input());
  jobs::Session plain(job, arguments.data_root, jobs::Session::Purpose::kTraining, {});
  jobs::Session control(job, arguments.data_root, jobs::Session::Purpose::kTraining, {});
  const std::vector<Measurement> results = measure_in_turns({{"not traced", [&] { train(plain, arguments.rounds); }},
                                                             {"traced", [&] { train(traced, arguments.rounds); }},
                                                             {"control", [&] { train(control, arguments.rounds); }}},
                                                            {.turns = arguments.turns});
  ARBALEST_CHECK(trace.dropped() == 0);
  const auto over_plain = [&](std::size_t i) { return results[i].seconds / results[0].seconds - 1.0; };
  fmt::print(stderr,
             "a trace costs {:.2f} % of a run; another run that is not traced takes {:+.2f} % (spread {:.1f} %)\n",
             100.0 * over_plain(1), 100.0 * over_plain(2), 100.0 * results[0].spread);
  nlohmann::ordered_json fields{{"job", job.name}, {"batch_size", job.training.batch_size}};
  for (const Measurement& result : results) fields["contenders"].push_back(to_json(result));
  fields["cost"] = over_plain(1);
  fields["cost_of_control"] = over_plain(2);
  fields["target_cost"] = 0.01;
  print_result("trace", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  arbalest::bench::Arguments arguments;
  CLI::App app("What does a trace cost the run that is traced?");
  app.add_option("JOB", arguments.job, "Job file")->capture_default_str();
  app.add_option("--data-root", arguments.data_root, "Where datasets lie")->capture_default_str();
  app.add_option("--set", arguments.overrides, "As for arbalest train")->allow_extra_args(false);
  app.add_option("--turns", arguments.turns, "Turns of each")->capture_default_str()->check(CLI::Range(3, 1000));
  app.add_option("--rounds", arguments.rounds, "Rounds of a turn")->capture_default_str()->check(CLI::Range(1, 10000));
  return arbalest::bench::run_program(app, argc, argv, [&] { return arbalest::bench::run(arguments); });
}
