// How much of the speed of the bare oneDNN primitives does one learner keep? (Formulas: bench/README.md.)
#include <sys/resource.h>

#include <chrono>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/bare_lenet.h"
#include "bench/harness.h"
#include "engine/cpu/threads.h"
#include "jobs/options/load_job.h"
#include "jobs/run/session.h"

namespace arbalest::bench {
namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CPU seconds that the whole process takes per second while one learner trains.
double cpu_seconds_per_second(jobs::Session& session, double duration) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (elapsed() < duration) session.scheduler().advance(session.training_ring(), 1);
  session.scheduler().drain();
  return (cpu_seconds() - cpu_start) / elapsed();
}

int run(int core, int turns, int batch) {
  const std::string device = fmt::format("cpu:{}", core);
  const std::vector<std::string> overrides{"devices=" + device, "learners.per_device.fixed=1",
                                           fmt::format("training.batch_size={}", batch)};
  const jobs::JobOptions job = jobs::load_job("configs/lenet-digits.txtpb", overrides);
  jobs::Session session(job, "", jobs::Session::Purpose::kTraining, {});
  engine::cpu::pin_this_thread({core});
  engine::cpu::set_thread_count(1);
  BareLenet bare(job.training.batch_size);

  constexpr int kSteps = 16;  // hides the pipeline's filling and draining behind real work
  const std::vector<Contender> contenders{{"bare primitives",
                                           [&] {
                                             for (int i = 0; i < kSteps; ++i) bare.step();
                                           }},
                                          {"one learner", [&] {
                                             session.scheduler().advance(session.training_ring(), kSteps);
                                             session.scheduler().drain();
                                           }}};
  const std::vector<Measurement> results = measure_in_turns(contenders, {.turns = turns, .seconds_per_turn = 0.3});
  const double examples = static_cast<double>(kSteps * job.training.batch_size);
  nlohmann::ordered_json fields{{"batch", batch}};
  for (const Measurement& result : results) {
    fields["contenders"].push_back(to_json(result));
    fmt::print("{:<16} {:>8.0f} images/s  spread {:.1f} %\n", result.name, examples / result.seconds,
               100 * result.spread);
  }
  fields["speed_of_bare"] = results[0].seconds / results[1].seconds;
  fields["cpu_seconds_per_second"] = cpu_seconds_per_second(session, 5.0);
  fmt::print("one learner keeps {:.1f} % of the bare speed; the process takes {:.3f} CPU seconds a second\n",
             100.0 * results[0].seconds / results[1].seconds, fields["cpu_seconds_per_second"].get<double>());
  print_result("overhead", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  CLI::App app{"One learner against the bare oneDNN primitives of LeNet, one thread on one core."};
  int core = 0;
  int turns = 15;
  int batch = 24;
  app.add_option("--core", core, "core that both run on");
  app.add_option("--turns", turns, "turns of each")->check(CLI::Range(3, 1000));
  app.add_option("--batch", batch,
                 "examples of a mini-batch; with a multiple of 16 the learner has convolutions of its own")
      ->check(CLI::Range(1, 4096));
  CLI11_PARSE(app, argc, argv);
  return arbalest::bench::run(core, turns, batch);
}
