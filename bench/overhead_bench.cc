// Which fraction of the speed of bare oneDNN primitives does one learner reach? (Formulas: bench/README.md.)

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/bare_network.h"
#include "bench/support/harness.h"
#include "engine/cpu/runtime/threads.h"
#include "engine/host/pinning.h"
#include "engine/host/thread_time.h"
#include "options/loading/load_job.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

// Returns the CPU seconds per second of the whole process while one learner trains.
double cpu_seconds_per_second(jobs::Session& session, double duration) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const double cpu_start = engine::host::process_cpu_seconds();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (elapsed() < duration) session.scheduler().advance(session.training_ring(), 1);
  session.scheduler().drain();
  return (engine::host::process_cpu_seconds() - cpu_start) / elapsed();
}

struct Arguments {
  std::string model = "lenet";
  std::string data_root = "data";
  int core = 0;
  int turns = 15;
  int batch = 0;  // 0: the model's default
};

struct Model {
  const char* name;
  const char* job;
  int batch;
  // Steps per turn. They hide the filling and draining of the pipeline.
  int steps;
  BareNetwork (*bare)(std::int64_t batch);
};

const Model kModels[] = {
    // With a multiple of 16 the learner would use our own convolutions.
    {"lenet", "configs/lenet-digits.txtpb", 24, 16, &BareNetwork::lenet},
    {"resnet20", "configs/resnet20-cifar10.txtpb", 64, 2,
     [](std::int64_t batch) { return BareNetwork::resnet_cifar(20, batch); }},
    {"resnet32", "configs/resnet32-cifar10.txtpb", 64, 2,
     [](std::int64_t batch) { return BareNetwork::resnet_cifar(32, batch); }},
};

int run(const Arguments& arguments, const Model& model) {
  const int batch = arguments.batch > 0 ? arguments.batch : model.batch;
  const std::string device = fmt::format("cpu:{}", arguments.core);
  const std::vector<std::string> overrides{"devices=" + device, "learners.per_device.fixed=1",
                                           fmt::format("training.batch_size={}", batch)};
  const jobs::JobOptions job = jobs::load_job(model.job, overrides);
  jobs::Session session(job, arguments.data_root, {});
  engine::host::pin_this_thread({arguments.core});
  engine::cpu::set_thread_count(1);
  BareNetwork bare = model.bare(batch);

  const std::vector<Contender> contenders{{"bare primitives",
                                           [&] {
                                             for (int i = 0; i < model.steps; ++i) bare.step();
                                           }},
                                          {"one learner", [&] {
                                             session.scheduler().advance(session.training_ring(), model.steps);
                                             session.scheduler().drain();
                                           }}};
  const std::vector<Measurement> results =
      measure_in_turns(contenders, {.turns = arguments.turns, .seconds_per_turn = 0.3});
  const double examples = static_cast<double>(model.steps) * batch;
  nlohmann::ordered_json fields{{"model", model.name}, {"batch", batch}};
  for (const Measurement& result : results) {
    fields["contenders"].push_back(to_json(result));
    fmt::print(stderr, "{:<16} {:>8.0f} images/s  spread {:.1f} %, at best {:.0f}\n", result.name,
               examples / result.seconds, 100 * result.spread, examples / result.fastest_seconds);
  }
  fields["speed_of_bare"] = results[0].seconds / results[1].seconds;
  fields["speed_of_bare_at_best"] = results[0].fastest_seconds / results[1].fastest_seconds;
  fields["cpu_seconds_per_second"] = cpu_seconds_per_second(session, 5.0);
  fmt::print(stderr,
             "one learner keeps {:.1f} % of the bare speed ({:.1f} % at best); the process takes {:.3f} CPU seconds a "
             "second\n",
             100.0 * fields["speed_of_bare"].get<double>(), 100.0 * fields["speed_of_bare_at_best"].get<double>(),
             fields["cpu_seconds_per_second"].get<double>());
  print_result("overhead", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  using namespace arbalest::bench;
  CLI::App app{"One learner against the bare oneDNN primitives of its model, one thread on one core."};
  Arguments arguments;
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.name);
  app.add_option("--model", arguments.model, "model")->check(CLI::IsMember(names));
  app.add_option("--data-root", arguments.data_root, "where CIFAR-10 lies, for a ResNet")->envname("ARBALEST_DATA");
  app.add_option("--core", arguments.core, "core that both run on");
  app.add_option("--turns", arguments.turns, "turns of each")->check(CLI::Range(3, 1000));
  app.add_option("--batch", arguments.batch, "examples of a mini-batch (24 for LeNet, 64 for a ResNet)")
      ->check(CLI::Range(1, 4096));
  return run_program(app, argc, argv,
                     [&] { return run(arguments, *std::ranges::find(kModels, arguments.model, &Model::name)); });
}
