// Tests which batch norm statistics the central model of a job gets.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/training/whole_run.h"
#include "train/session/session.h"

namespace arbalest::tests {

namespace {

std::unique_ptr<jobs::Session> trained(const std::string& statistics, int examples = 2048) {
  jobs::JobOptions job = load("convnet-digits.txtpb", {"devices=cpu", "learners.per_device.fixed=2",
                                                       "training.batch_norm_statistics=" + statistics,
                                                       "training.batch_norm_examples=" + std::to_string(examples)});
  auto session = jobs::open_session(job, "", {});
  session->scheduler().advance(session->training_ring(), 5);
  session->scheduler().drain();
  return session;
}

// Distance between the first layers' running means.
double distance(const std::vector<dataflow::NamedTensor>& a, const std::vector<dataflow::NamedTensor>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != "norm1.running_mean") continue;
    for (std::size_t c = 0; c < a[i].values.size(); ++c) sum += std::abs(a[i].values[c] - b[i].values[c]);
  }
  return sum;
}

bool is_statistic(const std::string& name) { return name.find(".running_") != std::string::npos; }

}  // namespace

TEST_CASE("a job chooses the source of the central model's statistics, and nothing else changes", "[training]") {
  const auto estimating = trained("REESTIMATED");
  const auto averaging = trained("AVERAGED");
  const auto carried = averaging->scheduler().snapshot();
  const auto estimated = estimating->scheduler().snapshot();
  const auto before_estimating = estimating->scheduler().snapshot(scheduler::Statistics::kAveraged);
  REQUIRE(carried.size() == estimated.size());
  for (std::size_t i = 0; i < carried.size(); ++i) {
    CAPTURE(carried[i].name);
    CHECK((carried[i].values == estimated[i].values) == !is_statistic(carried[i].name));
    CHECK(carried[i].values == before_estimating[i].values);
  }
}

TEST_CASE("statistics are estimated on the number of examples that the job sets", "[training]") {
  const auto of_all = trained("REESTIMATED", 1'000'000)->scheduler().snapshot();
  const auto of_few = trained("REESTIMATED", 1)->scheduler().snapshot();
  const auto of_many = trained("REESTIMATED", 16'000)->scheduler().snapshot();
  CHECK(distance(of_many, of_all) > 0.0);
  CHECK(distance(of_many, of_all) < 0.5 * distance(of_few, of_all));
}

namespace {

constexpr int kBatches = 6;

// The running statistics are those of the last mini-batch, because their momentum is 1. The weights do not change,
// because the learning rate is too small.
std::unique_ptr<jobs::Session> random_session(const std::string& dropout, const std::string& augmentation, int learners,
                                              jobs::Session::Input input) {
  const jobs::JobOptions job = parse(
      fmt::format("name: 'random' model {{ layers {{ name: 'flat' input: 'image' flatten {{}} }}\n{}"
                  "layers {{ name: 'hidden' input: '{}' dense {{ units: 8 }} }}\n"
                  "layers {{ name: 'norm' input: 'hidden' batch_norm {{ momentum: 1 }} }}\n"
                  "layers {{ name: 'logits' input: 'norm' dense {{ units: 10 }} }}\n"
                  "layers {{ name: 'loss' input: ['logits', 'label'] softmax_cross_entropy {{}} }} }}\n"
                  "data {{ digits {{}} augmentation {{ {} }} }} devices: 'cpu'\n"
                  "training {{ batch_size: 8 max_epochs: 1 batch_norm_examples: {} }} learning_rate {{ base: 1e-30 }}\n"
                  "learners {{ per_device {{ fixed: {} }} }}",
                  dropout, dropout.empty() ? "flat" : "dropped", augmentation, 8 * kBatches, learners));
  return std::make_unique<jobs::Session>(job, "", engine::DeviceOptions{}, input);
}

using Statistics = std::map<std::string, std::vector<double>>;  // by name

Statistics statistics_of(jobs::Session& session, scheduler::Statistics source) {
  Statistics statistics;
  for (const dataflow::NamedTensor& tensor : session.scheduler().snapshot(source)) {
    if (is_statistic(tensor.name)) statistics[tensor.name].assign(tensor.values.begin(), tensor.values.end());
  }
  return statistics;
}

}  // namespace

TEST_CASE("re-estimated statistics are of mini-batches with the dropout and augmentation of training", "[training]") {
  const auto input = GENERATE(jobs::Session::Input::kResident, jobs::Session::Input::kRing);
  const bool drops = GENERATE(true, false);
  const std::string dropout = drops ? "layers { name: 'dropped' input: 'flat' dropout { ratio: 0.5 } }\n" : "";
  const std::string augmentation = drops ? "" : "padding: 4 horizontal_flip: true cutout: 12";
  CAPTURE(drops, input == jobs::Session::Input::kRing);
  const auto training = random_session(dropout, augmentation, 1, input);
  Statistics expected;
  for (int batch = 0; batch < kBatches; ++batch) {
    training->scheduler().advance(training->training_ring(), 1);
    for (const auto& [name, values] : statistics_of(*training, scheduler::Statistics::kAveraged)) {
      expected[name].resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) expected[name][i] += values[i] / kBatches;
    }
  }
  REQUIRE(expected.size() == 2);
  for (const int learners : {1, 2}) {
    const auto estimating = random_session(dropout, augmentation, learners, input);
    const Statistics found = statistics_of(*estimating, scheduler::Statistics::kReestimated);
    for (const auto& [name, values] : expected) {
      CAPTURE(learners, name);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(found.at(name).at(i) == Approx(values[i]).epsilon(1e-4));
    }
  }
}

}  // namespace arbalest::tests
