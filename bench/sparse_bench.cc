// How soon does delayed block proximal gradient reach the minimum, and how well does Hogwild scale? (bench/README.md)
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "dataflow/input/formats/libsvm.h"
#include "engine/error.h"
#include "scheduler/sparse/hogwild.h"
#include "scheduler/sparse/proximal_solver.h"
#include "tests/support/sparse_data.h"

namespace arbalest::bench {
namespace {

using scheduler::HogwildSolver;
using scheduler::ProximalOptions;
using scheduler::ProximalPass;
using scheduler::ProximalSolver;

struct Data {
  std::string file;  // "": made up
  std::int64_t rows = 20000;
  std::int64_t features = 5000;
  int entries = 40;

  dataflow::SparseRows load() const {
    if (!file.empty()) return dataflow::load_libsvm(file, features);
    return tests::make_sparse_rows({.rows = rows, .columns = features, .entries = entries}, 1);
  }
  nlohmann::ordered_json describe(const dataflow::SparseRows& data) const {
    return {{"file", file}, {"rows", data.rows()}, {"features", data.columns}, {"entries", data.entries()}};
  }
};

std::vector<std::vector<int>> floating(int workers) {
  return std::vector<std::vector<int>>(static_cast<std::size_t>(workers));
}

struct Course {
  bool has_reached = false;
  int passes = 0;
  double seconds = 0.0;  // of the passes; the reading of the data and the solver's preparation are not counted
  double objective = 0.0;
};

// Trains until the objective is at most `goal`.
Course reach(const dataflow::SparseRows& data, const ProximalOptions& options, int workers, double goal,
             int most_passes) {
  ProximalSolver solver(data, options, floating(workers));
  Course course;
  const auto start = std::chrono::steady_clock::now();
  while (!course.has_reached && course.passes < most_passes) {
    const ProximalPass pass = solver.pass(static_cast<std::uint64_t>(course.passes++));
    course.objective = pass.objective;
    course.has_reached = pass.objective <= goal;
  }
  course.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return course;
}

struct ProximalQuestion {
  std::vector<int> delays{0, 2, 4};
  std::vector<int> workers{1, 2};
  ProximalOptions options{.blocks = 32, .l1 = 1e-3};
  double reference = 0.0;
  double tolerance = 1e-4;
  int most_passes = 500;
  int turns = 3;
};

// The settings take turns, so that disturbances of the machine affect all of them.
int measure_proximal(const Data& source, const ProximalQuestion& question) {
  const dataflow::SparseRows data = source.load();
  const double goal = question.reference * (1.0 + question.tolerance);
  struct Setting {
    int delay;
    int workers;
    std::vector<double> seconds = {};
    Course last = {};
  };
  std::vector<Setting> settings;
  for (const int delay : question.delays) {
    for (const int workers : question.workers) settings.push_back({delay, workers});
  }
  for (int turn = 0; turn < question.turns; ++turn) {
    for (Setting& setting : settings) {
      ProximalOptions options = question.options;
      options.max_delay = setting.delay;
      setting.last = reach(data, options, setting.workers, goal, question.most_passes);
      setting.seconds.push_back(setting.last.seconds);
    }
  }
  for (const Setting& setting : settings) {
    const Course& last = setting.last;
    const Summary seconds = summarize(setting.seconds);
    fmt::print(stderr, "max_delay {} workers {}: {:.6g} above the reference after {} passes, {:.3f} s\n", setting.delay,
               setting.workers, last.objective / question.reference - 1.0, last.passes, seconds.median);
    print_result("time of delayed proximal gradient to an objective",
                 {{"data", source.describe(data)},
                  {"blocks", question.options.blocks},
                  {"l1", question.options.l1},
                  {"max_delay", setting.delay},
                  {"workers", setting.workers},
                  {"reference", question.reference},
                  {"goal", goal},
                  {"has_reached", last.has_reached},
                  {"objective", last.objective},
                  {"above_reference", last.objective / question.reference - 1.0},
                  {"passes", last.passes},
                  {"seconds", to_json(seconds)}});
  }
  return 0;
}

struct HogwildQuestion {
  int threads = 2;
  int epochs = 5;
  double learning_rate = 0.05;
  MeasureOptions measure{.turns = 15, .seconds_per_turn = 0.2, .warm_up_turns = 1};
};

double objective_after(const dataflow::SparseRows& data, const HogwildQuestion& question, int threads) {
  HogwildSolver solver(data, {}, floating(threads));
  for (int epoch = 0; epoch < question.epochs; ++epoch) {
    solver.epoch(static_cast<std::uint64_t>(epoch), static_cast<float>(question.learning_rate));
  }
  return scheduler::evaluate(solver.model(), data).loss;
}

int measure_hogwild(const Data& source, const HogwildQuestion& question) {
  const dataflow::SparseRows data = source.load();
  std::vector<Contender> contenders;
  for (const int threads : {1, question.threads}) {
    auto solver = std::make_shared<HogwildSolver>(data, scheduler::HogwildOptions{}, floating(threads));
    contenders.push_back({fmt::format("threads: {}", threads), [solver, &question, epoch = std::uint64_t{0}]() mutable {
                            solver->epoch(epoch++, static_cast<float>(question.learning_rate));
                          }});
  }
  const std::vector<Measurement> measured = measure_in_turns(contenders, question.measure);
  const double speed_up = measured[0].seconds / measured[1].seconds;
  const double one = objective_after(data, question, 1);
  const double several = objective_after(data, question, question.threads);
  const auto rows = static_cast<double>(data.rows());
  fmt::print(stderr,
             "1 thread {:.0f} updates/s (spread {:.1f} %), {} threads {:.0f} updates/s: {:.2f} times; loss after {} "
             "epochs {:.6f} and {:.6f}\n",
             rows / measured[0].seconds, measured[0].spread * 100.0, question.threads, rows / measured[1].seconds,
             speed_up, question.epochs, one, several);
  print_result("updates a second of Hogwild",
               {{"data", source.describe(data)},
                {"learning_rate", question.learning_rate},
                {"threads", question.threads},
                {"updates_per_second", {rows / measured[0].seconds, rows / measured[1].seconds}},
                {"speed_up", speed_up},
                {"speed_up_of_fastest_turns", measured[0].fastest_seconds / measured[1].fastest_seconds},
                {"epochs", question.epochs},
                {"loss", {one, several}},
                {"results", {to_json(measured[0]), to_json(measured[1])}}});
  return 0;
}

void write(const Data& source, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << tests::libsvm_text(source.load());
  if (!file.flush()) engine::fail(engine::ErrorKind::kOutOfMemory, "'{}' cannot be written", path);
}

int run(int argc, char** argv) {
  CLI::App app{"How soon does delayed block proximal gradient reach the minimum, and how well does Hogwild scale?"};
  Data source;
  ProximalQuestion proximal;
  HogwildQuestion hogwild;
  std::string written;
  app.require_subcommand(1);
  app.add_option("--data", source.file, "a file in LIBSVM's format (default: made-up rows)");
  app.add_option("--features", source.features, "features")->capture_default_str();
  app.add_option("--rows", source.rows, "made-up rows")->capture_default_str();
  app.add_option("--entries", source.entries, "numbers in a made-up row")->capture_default_str();
  CLI::App* proximal_command = app.add_subcommand("proximal", "time to an objective over delays and workers");
  proximal_command->add_option("--reference", proximal.reference, "the least objective, from sparse_reference.py")
      ->required();
  proximal_command->add_option("--tolerance", proximal.tolerance, "relative, above it")->capture_default_str();
  proximal_command->add_option("--l1", proximal.options.l1, "")->capture_default_str();
  proximal_command->add_option("--blocks", proximal.options.blocks, "")->capture_default_str();
  proximal_command->add_option("--delays", proximal.delays, "")->capture_default_str();
  proximal_command->add_option("--workers", proximal.workers, "")->capture_default_str();
  proximal_command->add_option("--turns", proximal.turns, "")->capture_default_str()->check(CLI::Range(1, 1000));
  CLI::App* hogwild_command = app.add_subcommand("hogwild", "updates a second of several threads over one");
  hogwild_command->add_option("--threads", hogwild.threads, "")->capture_default_str()->check(CLI::Range(2, 1024));
  hogwild_command->add_option("--learning-rate", hogwild.learning_rate, "")->capture_default_str();
  hogwild_command->add_option("--epochs", hogwild.epochs, "of the loss that is compared")->capture_default_str();
  hogwild_command->add_option("--turns", hogwild.measure.turns, "")->capture_default_str()->check(CLI::Range(2, 1000));
  CLI::App* write_command = app.add_subcommand("write", "write the made-up rows to a file");
  write_command->add_option("FILE", written)->required();
  return run_program(app, argc, argv, [&] {
    if (proximal_command->parsed()) return measure_proximal(source, proximal);
    if (hogwild_command->parsed()) return measure_hogwild(source, hogwild);
    write(source, written);
    return 0;
  });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
