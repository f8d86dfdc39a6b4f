// Measures what Hogwild's atomic loads and stores cost a learner, and how many changes are lost (bench/README.md).
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "engine/devices.h"
#include "engine/passes/shared_weights.h"

namespace arbalest::bench {
namespace {

using engine::SharedCopy;
using engine::SharedUpdate;
using engine::SharedWeights;
using engine::WeightUpdate;

// One learner of the shared weights: its vectors, and its passes as they are recorded in training.
class Learner {
 public:
  Learner(engine::Device& device, SharedWeights& shared, std::int64_t elements, engine::StreamRole role)
      : elements_(elements),
        ranges_{{0, elements, 1.0F, 1.0F}},
        weights_(static_cast<std::size_t>(elements)),
        gradient_(weights_.size(), -1.0F),
        stream_(device.create_stream({.name = "learner", .role = role})) {
    step_.learning_rate = 1.0F;  // a step adds 1
    own_copy_ = record([&] {
      stream_->copy(weights_.data(), shared.values, static_cast<std::size_t>(elements_) * sizeof(float), "copy");
    });
    own_step_ = record([&] { stream_->enqueue(update(), "update"); });
    shared_copy_ = record([&] {
      engine::enqueue(*stream_, SharedCopy{&shared, weights_.data(), elements_, &steps_}, "shared copy");
    });
    shared_step_ = record([&] {
      engine::enqueue(*stream_, SharedUpdate{&shared, update(), &steps_, &staleness_}, "shared update");
    });
  }

  void own_copy() { stream_->launch(*own_copy_, "copy"); }
  void own_step() { stream_->launch(*own_step_, "update"); }
  void shared_copy() { stream_->launch(*shared_copy_, "shared copy"); }
  void shared_step() { stream_->launch(*shared_step_, "shared update"); }
  void wait() { stream_->record().synchronize(); }

 private:
  template <typename Enqueue>
  std::unique_ptr<engine::TaskGraph> record(const Enqueue& enqueue) {
    stream_->begin_recording();
    enqueue();
    return stream_->end_recording();
  }

  // Without momentum a step adds exactly 1, so that the sum of the weights counts the changes.
  WeightUpdate update() {
    return {.weights = weights_.data(),
            .gradient = gradient_.data(),
            .ranges = ranges_,
            .rule = engine::Sgd{},
            .step = &step_,
            .non_finite = &non_finite_};
  }

  std::int64_t elements_;
  std::vector<engine::UpdateRange> ranges_;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  engine::StepParameters step_;
  std::int32_t non_finite_ = 0;
  std::uint64_t steps_ = 0;
  std::int64_t staleness_ = 0;
  std::unique_ptr<engine::Stream> stream_;
  std::unique_ptr<engine::TaskGraph> own_copy_;
  std::unique_ptr<engine::TaskGraph> own_step_;
  std::unique_ptr<engine::TaskGraph> shared_copy_;
  std::unique_ptr<engine::TaskGraph> shared_step_;
};

// The passes of one learner, on the calling thread, beside plain loops.
void measure_cost(engine::Device& device, std::int64_t elements) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  SharedWeights shared{values.data()};
  Learner learner(device, shared, elements, engine::StreamRole::kInference);
  const std::vector<Measurement> results = measure_in_turns({{"plain copy", [&] { learner.own_copy(); }},
                                                             {"shared copy", [&] { learner.shared_copy(); }},
                                                             {"plain step", [&] { learner.own_step(); }},
                                                             {"shared step", [&] { learner.shared_step(); }}});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    nlohmann::ordered_json row = to_json(results[i]);
    row["of_plain"] = results[i].seconds / results[i / 2 * 2].seconds;
    rows.push_back(row);
    fmt::print(stderr, "{:<12} {:8.1f} us  {:5.2f} x plain  spread {:.1f} %\n", results[i].name,
               results[i].seconds * 1e6, row["of_plain"].get<double>(), results[i].spread * 100.0);
  }
  print_result("cost of shared weights", {{"elements", elements}, {"results", rows}});
}

// Learners that do nothing but copy and step, at once: as many changes are lost as can be.
void measure_losses(engine::Device& device, std::int64_t elements, int learners, int steps) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  SharedWeights shared{values.data()};
  std::vector<std::unique_ptr<Learner>> all;
  for (int j = 0; j < learners; ++j) {
    all.push_back(std::make_unique<Learner>(device, shared, elements, engine::StreamRole::kLearner));
  }
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    for (const auto& learner : all) {
      learner->shared_copy();
      learner->shared_step();
    }
  }
  for (const auto& learner : all) learner->wait();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double made = static_cast<double>(learners) * steps * static_cast<double>(elements);
  const double lost = 1.0 - std::reduce(values.begin(), values.end(), 0.0) / made;
  fmt::print(stderr, "{} learners at once: {:.1f} us a copy and step, {:.3f} % of the changes lost\n", learners,
             seconds.count() / (learners * steps) * 1e6, lost * 100.0);
  print_result(
      "lost changes",
      {{"elements", elements}, {"learners", learners}, {"steps", steps}, {"seconds", seconds.count()}, {"lost", lost}});
}

int run(int argc, char** argv) {
  CLI::App app{"What do Hogwild's atomic loads and stores cost a learner, and how many changes are lost?"};
  std::int64_t elements = 431080;  // LeNet
  std::vector<int> learners{2, 4};
  int steps = 2000;
  app.add_option("--elements", elements, "length of the vectors")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--learners", learners, "that write at once")->capture_default_str()->check(CLI::Range(1, 1024));
  app.add_option("--steps", steps, "of each of them")->capture_default_str()->check(CLI::Range(1, 16000));
  return run_program(app, argc, argv, [&] {
    const auto device = engine::open_device(engine::parse_device("cpu"));
    measure_cost(*device, elements);
    for (const int count : learners) measure_losses(*device, elements, count, steps);
    return 0;
  });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
