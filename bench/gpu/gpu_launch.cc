// How much longer does a learner's step take than its launch floor, which is a sequence of as many empty kernels as the
// step has nodes? (Formulas: bench/README.md.)
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/gpu/empty_kernels.h"
#include "bench/gpu/gpu.h"
#include "bench/gpu/gpu_questions.h"
#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "bench/support/step_graph.h"
#include "engine/kernel_choices.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

using engine::cuda::StreamContext;

struct Arguments {
  JobArguments job;
  std::string device = "cuda:0";
  int batch = 32;
  int turns = 21;
};

constexpr int kSteps = 16;  // per call: hides the filling and draining of the pipeline

void train(jobs::Session& session, int steps) {
  session.scheduler().advance(session.training_ring(), steps);
  session.scheduler().drain();
}

void run(const Arguments& arguments) {
  const std::string gpu = gpu_or_skip(arguments.device);
  const jobs::JobOptions job =
      arguments.job.load({"devices=" + arguments.device, "learners.per_device.fixed=1",
                          fmt::format("training.batch_size={}", arguments.batch), "learning_rate.base=0.001"});
  const std::string& data_root = arguments.job.data_root;
  jobs::Session with_graphs(job, data_root, {});
  jobs::Session without_graphs(job, data_root, {.graphs = false});
  // The step of a third session is captured completely: copies, kernels, and the report to the host. The session's
  // scheduler assumes that the step was enqueued, so the first replay completes it.
  StreamFinder finder;
  jobs::Session captured(job, data_root, {.observer = &finder, .graphs = false});
  train(captured, 1);
  StepGraph step(*finder.learner, [&] { captured.scheduler().advance(captured.training_ring(), 1); });
  step.replay(1);
  captured.scheduler().drain();
  // The kernel runs once outside a capture, so that it is loaded.
  finder.learner->submit("nothing",
                         [](const StreamContext& context) { enqueue_empty_kernels(1, context.stream.handle); });
  StepGraph empty(*finder.learner, [&] {
    finder.learner->submit(
        "nothing", [&](const StreamContext& context) { enqueue_empty_kernels(step.nodes(), context.stream.handle); });
  });

  const std::vector<Contender> contenders{{"empty kernels", [&] { empty.replay(kSteps); }},
                                          {"the step as one graph", [&] { step.replay(kSteps); }},
                                          {"one learner", [&] { train(with_graphs, kSteps); }},
                                          {"one learner, no graphs", [&] { train(without_graphs, kSteps); }}};
  const std::vector<Measurement> results =
      measure_in_turns(contenders, {.turns = arguments.turns, .seconds_per_turn = 0.05});
  nlohmann::ordered_json fields{
      {"job", arguments.job.file}, {"batch", arguments.batch}, {"gpu", gpu}, {"nodes", step.nodes()}};
  for (const engine::KernelChoice& choice : with_graphs.devices().front()->kernel_choices()) {
    fields["kernel_choices"].push_back(to_text(choice));
  }
  for (const Measurement& result : results) {
    const double seconds = result.seconds / kSteps;
    fields["contenders"].push_back({{"name", result.name},
                                    {"step_seconds", seconds},
                                    {"over_floor", result.seconds / results.front().seconds},
                                    {"images_per_second", arguments.batch / seconds},
                                    {"spread", result.spread}});
    fmt::print(stderr, "{:<24} {:>8.2f} us a step, {:.2f} x the floor, spread {:.1f} %\n", result.name, 1e6 * seconds,
               result.seconds / results.front().seconds, 100.0 * result.spread);
  }
  fmt::print(stderr, "a step has {} nodes\n", step.nodes());
  print_result("launch floor", fields);
}

}  // namespace

void add_launch(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("launch", "One learner's step against as many empty kernels as it has nodes.");
  const auto arguments = std::make_shared<Arguments>();
  add_job(*command, arguments->job);
  command->add_option("--device", arguments->device, "GPU")->capture_default_str();
  command->add_option("--batch", arguments->batch, "examples of a mini-batch")->capture_default_str();
  command->add_option("--turns", arguments->turns, "turns of each")->check(CLI::Range(3, 1000));
  command->callback([arguments] { run(*arguments); });
}

}  // namespace arbalest::bench
