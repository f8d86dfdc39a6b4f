// Measures how well Hogwild scales on matrix factorization, and whether it ends near one thread (bench/README.md).
#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "engine/host/topology.h"
#include "scheduler/sparse/hogwild_factorization.h"
#include "tests/support/made_up_ratings.h"

namespace arbalest::bench {
namespace {

using scheduler::HogwildFactorization;

struct Question {
  tests::RatingsSize size;
  std::int64_t width = 16;
  int threads = std::max(2, engine::host::usable_cores());
  int epochs = 40;
  double learning_rate = 0.02;
  double weight_decay = 0.05;
  MeasureOptions measure{.turns = 15, .seconds_per_turn = 0.3, .warm_up_turns = 1};
};

// Each thread has a core of its own while there are enough, as the learners of a job that names cores have.
std::vector<std::vector<int>> cores_of(int threads) {
  const std::vector<int> allowed = engine::host::allowed_cores();
  std::vector<std::vector<int>> cores;
  for (int i = 0; i < threads; ++i) cores.push_back({allowed[static_cast<std::size_t>(i) % allowed.size()]});
  return cores;
}

std::unique_ptr<HogwildFactorization> make_solver(const Question& question, const tests::MadeUpRatings& ratings,
                                                  std::vector<std::vector<int>> cores) {
  double sum = 0.0;
  for (const scheduler::Rating& rating : ratings.training) sum += rating.value;
  const auto mean = static_cast<float>(sum / static_cast<double>(ratings.training.size()));
  return std::make_unique<HogwildFactorization>(
      ratings.training, tests::make_factorization(question.size, question.width, mean),
      scheduler::FactorizationOptions{.weight_decay = static_cast<float>(question.weight_decay)}, std::move(cores));
}

// The root of the mean squared error on the test ratings. The learning rate falls to a tenth for the last quarter.
double rmse_after(const Question& question, const tests::MadeUpRatings& ratings, int threads) {
  const auto solver = make_solver(question, ratings, cores_of(threads));
  for (int epoch = 0; epoch < question.epochs; ++epoch) {
    const double factor = 4 * epoch < 3 * question.epochs ? 1.0 : 0.1;
    solver->epoch(static_cast<std::uint64_t>(epoch), static_cast<float>(question.learning_rate * factor));
  }
  return std::sqrt(scheduler::squared_error(solver->model(), ratings.test));
}

// One thread, several threads that share a model, and as many solvers with a model each, side by side: what the machine
// gives threads that have nothing in common.
std::vector<Contender> contenders_for(const Question& question, const tests::MadeUpRatings& ratings) {
  std::vector<Contender> contenders;
  for (const int threads : {1, question.threads}) {
    std::shared_ptr<HogwildFactorization> solver = make_solver(question, ratings, cores_of(threads));
    contenders.push_back({fmt::format("threads: {}", threads), [solver, &question, epoch = std::uint64_t{0}]() mutable {
                            solver->epoch(epoch++, static_cast<float>(question.learning_rate));
                          }});
  }
  std::vector<std::shared_ptr<HogwildFactorization>> solvers;
  for (const std::vector<int>& cores : cores_of(question.threads)) {
    solvers.push_back(make_solver(question, ratings, {cores}));
  }
  contenders.push_back(
      {fmt::format("independent: {}", question.threads), [solvers, &question, epoch = std::uint64_t{0}]() mutable {
         std::vector<std::jthread> threads;
         for (const auto& solver : solvers) {
           threads.emplace_back(
               [&solver, &question, epoch] { solver->epoch(epoch, static_cast<float>(question.learning_rate)); });
         }
         ++epoch;
       }});
  return contenders;
}

int measure(const Question& question) {
  const tests::MadeUpRatings ratings = tests::make_ratings(question.size);
  const std::vector<Measurement> measured = measure_in_turns(contenders_for(question, ratings), question.measure);
  const auto updates = static_cast<double>(ratings.training.size());
  const double speed_up = measured[0].seconds / measured[1].seconds;
  const double bound = question.threads * measured[0].seconds / measured[2].seconds;
  const double one = rmse_after(question, ratings, 1);
  const double several = rmse_after(question, ratings, question.threads);
  fmt::print(stderr,
             "1 thread {:.0f} updates/s (spread {:.1f} %), {} threads {:.0f} updates/s: {:.2f} times ({:.2f} by the "
             "fastest turns); with a model each {:.2f} times; test RMSE after {} epochs {:.5f} and {:.5f}\n",
             updates / measured[0].seconds, measured[0].spread * 100.0, question.threads, updates / measured[1].seconds,
             speed_up, measured[0].fastest_seconds / measured[1].fastest_seconds, bound, question.epochs, one, several);
  print_result("updates a second of Hogwild on matrix factorization",
               {{"users", question.size.users},
                {"items", question.size.items},
                {"ratings", ratings.training.size()},
                {"test_ratings", ratings.test.size()},
                {"width", question.width},
                {"noise", question.size.noise},
                {"learning_rate", question.learning_rate},
                {"weight_decay", question.weight_decay},
                {"threads", question.threads},
                {"updates_per_second", {updates / measured[0].seconds, updates / measured[1].seconds}},
                {"speed_up", speed_up},
                {"speed_up_of_fastest_turns", measured[0].fastest_seconds / measured[1].fastest_seconds},
                {"speed_up_with_a_model_each", bound},
                {"epochs", question.epochs},
                {"test_rmse", {one, several}},
                {"results", {to_json(measured[0]), to_json(measured[1]), to_json(measured[2])}}});
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{"How well does Hogwild scale on matrix factorization, and does it end where one thread ends?"};
  Question question;
  app.add_option("--users", question.size.users, "")->capture_default_str()->check(CLI::Range(10, 10'000'000));
  app.add_option("--items", question.size.items, "")->capture_default_str()->check(CLI::Range(10, 10'000'000));
  app.add_option("--ratings", question.size.training, "")->capture_default_str();
  app.add_option("--test-ratings", question.size.test, "")->capture_default_str();
  app.add_option("--width", question.width, "of the vectors")->capture_default_str()->check(CLI::Range(1, 4096));
  app.add_option("--threads", question.threads, "beside one")->capture_default_str()->check(CLI::Range(2, 1024));
  app.add_option("--learning-rate", question.learning_rate, "")->capture_default_str();
  app.add_option("--weight-decay", question.weight_decay, "")->capture_default_str();
  app.add_option("--epochs", question.epochs, "before the errors are compared")->capture_default_str();
  app.add_option("--turns", question.measure.turns, "")->capture_default_str()->check(CLI::Range(2, 1000));
  return run_program(app, argc, argv, [&] { return measure(question); });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
