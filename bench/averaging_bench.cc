// How close to the speed of memory are the passes over flat vectors? (Formulas: bench/README.md.)
#include <cstring>
#include <functional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "engine/backends/devices.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/threads.h"

namespace arbalest::bench {
namespace {

using engine::Buffer;
using engine::CentralUpdate;
using engine::Device;
using engine::LocalAveraging;
using engine::ReplicaDifference;
using engine::UpdateRange;
using engine::WeightUpdate;
using engine::cpu::TaskContext;

// The vectors of one device with several learners, which are the arguments of the passes.
struct Vectors {
  Vectors(Device& device, std::int64_t count, int replicas) : elements(count) {
    const auto vector = [&](std::int64_t extra = 0) {
      buffers.push_back(device.allocate(static_cast<std::size_t>(elements + extra) * sizeof(float)));
      std::fill_n(buffers.back().as<float>(), elements, 0.25F);
      return buffers.back().as<float>();
    };
    for (int j = 0; j < replicas; ++j) {
      weights.push_back(vector());
      momenta.push_back(vector());
      gradients.push_back(vector());
    }
    for (float*& buffer : central) buffer = vector();
    sum = vector(engine::kAveragingTail);
  }

  std::int64_t elements;
  std::vector<Buffer> buffers;
  std::vector<float*> weights;
  std::vector<float*> momenta;
  std::vector<float*> gradients;
  float* central[2] = {};
  float* sum = nullptr;
  std::int32_t non_finite = 0;
};

struct Pass {
  std::string name;
  double bytes_per_element;  // bytes that the pass must move, including the fetch of vectors that are only written
  std::function<void(Vectors&)> run;
};

class Passes {
 public:
  Passes(std::int64_t elements, int replicas, int threads)
      : context_{threads}, range_{0, elements, 1.0F, 1.0F}, replicas_(replicas) {
    step_.learning_rate = 1e-3F;
    step_.pull = 0.1F;
  }

  std::vector<Pass> all() {
    return {
        {"memcpy", 12.0,
         [](Vectors& v) { std::memcpy(v.sum, v.weights[0], static_cast<std::size_t>(v.elements) * sizeof(float)); }},
        {"weight_update, plain", 20.0, [this](Vectors& v) { update(v, 1, false); }},
        {"weight_update, corrected", 24.0, [this](Vectors& v) { update(v, 1, true); }},
        {"weight_update, corrected, all replicas", 24.0 * replicas_,
         [this](Vectors& v) { update(v, v.weights.size(), true); }},
        {"replica_difference", 4.0 * replicas_ + 12.0,
         [this](Vectors& v) {
           addresses_.assign(v.weights.begin(), v.weights.end());
           engine::cpu::run_flat(ReplicaDifference{addresses_, v.central[0], v.sum, v.elements}, context_);
         }},
        {"central_update", 16.0,
         [this](Vectors& v) {
           engine::cpu::run_flat(CentralUpdate{v.central[0], v.central[1], v.sum, {}, v.elements}, context_);
         }},
        {"local_averaging", 4.0 * replicas_ + 12.0,
         [this](Vectors& v) {
           addresses_.assign(v.weights.begin(), v.weights.end());
           engine::cpu::run_flat(
               LocalAveraging{addresses_, v.central[0], v.central[1], v.sum + v.elements, {}, v.elements}, context_);
         }},
    };
  }

 private:
  void update(Vectors& v, std::size_t replicas, bool corrected) {
    for (std::size_t j = 0; j < replicas; ++j) {
      WeightUpdate task;
      task.weights = v.weights[j];
      task.state[0] = v.momenta[j];
      task.gradient = v.gradients[j];
      if (corrected) std::copy_n(v.central, 2, task.references);
      task.ranges = {&range_, 1};
      task.rule = engine::Sgd{.momentum = 0.9F};
      task.step = &step_;
      task.non_finite = &v.non_finite;
      engine::cpu::run_flat(task, context_);
    }
  }

  TaskContext context_;
  UpdateRange range_;
  int replicas_;
  engine::StepParameters step_;
  std::vector<const float*> addresses_;
};

// Passes use `sets` sets of vectors in turns. A single set stays in the caches, and many sets come from memory.
void measure(Device& device, std::int64_t elements, int replicas, int threads, int sets) {
  std::vector<Vectors> vectors;
  for (int i = 0; i < sets; ++i) vectors.emplace_back(device, elements, replicas);
  Passes passes(elements, replicas, threads);
  std::vector<Contender> contenders;
  for (const Pass& pass : passes.all()) {
    contenders.push_back({pass.name, [&vectors, run = pass.run, next = std::size_t{0}]() mutable {
                            run(vectors[next++ % vectors.size()]);
                          }});
  }
  const std::vector<Measurement> measurements = measure_in_turns(contenders);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const std::vector<Pass> all = passes.all();
  double copy_rate = 0.0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double rate = all[i].bytes_per_element * static_cast<double>(elements) / measurements[i].seconds / 1e9;
    if (i == 0) copy_rate = rate;
    nlohmann::ordered_json row = to_json(measurements[i]);
    row["gigabytes_per_second"] = rate;
    row["of_memcpy"] = rate / copy_rate;
    rows.push_back(row);
    fmt::print(stderr, "k={} threads={} sets={} {:<38} {:8.1f} us  {:6.1f} GB/s  {:4.2f} of memcpy  spread {:.1f} %\n",
               replicas, threads, sets, all[i].name, measurements[i].seconds * 1e6, rate, rate / copy_rate,
               measurements[i].spread * 100.0);
  }
  print_result(
      "flat passes against memcpy",
      {{"elements", elements}, {"learners", replicas}, {"threads", threads}, {"sets", sets}, {"results", rows}});
}

int run(int argc, char** argv) {
  CLI::App app{"How close to the speed of memory are the passes over flat vectors?"};
  std::int64_t elements = 431080;  // LeNet
  std::vector<int> learners{1, 2, 4, 8};
  std::vector<int> sets{1, 16};
  int threads = 1;
  app.add_option("--elements", elements, "length of the vectors")->capture_default_str();
  app.add_option("--learners", learners, "replicas per device")->capture_default_str();
  app.add_option("--sets", sets, "sets of vectors that take turns")->capture_default_str();
  app.add_option("--threads", threads, "threads of each pass")->capture_default_str();
  return run_program(app, argc, argv, [&] {
    const engine::cpu::ThreadCountScope scope(threads);
    const auto device = engine::open_device(engine::parse_device("cpu"));
    for (const int count : sets) {
      for (const int k : learners) measure(*device, elements, k, threads, count);
    }
    return 0;
  });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
