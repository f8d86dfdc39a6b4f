// Running statistics of batch norm in whole trainings, compared with SMA in double precision. They must be as
// repeatable as the weights.
#include <algorithm>
#include <cmath>
#include <utility>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/outputs/classification.h"
#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/read_example.h"
#include "tests/support/reference_ops.h"
#include "tests/support/reference_sma.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kPixels = 16;
constexpr std::int64_t kHidden = 6;
constexpr std::int64_t kClasses = 3;
constexpr float kEpsilon = 1e-3F;
constexpr float kMomentum = 0.2F;

// dense - batch norm - ReLU - dense.
std::vector<dataflow::LayerDescription> network() {
  dataflow::BatchNormLayer::Options norm;
  norm.epsilon = kEpsilon;
  norm.momentum = kMomentum;
  return {{"hidden", {"image"}, dense_layer(kHidden)},
          {"norm", {"hidden"}, std::make_shared<dataflow::BatchNormLayer>(norm)},
          {"relu", {"norm"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"logits", {"relu"}, dense_layer(kClasses)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

// Lengths of its parameters, in order. Parameters 4 and 5 are the running statistics.
const std::vector<std::int64_t> kLengths{kHidden * kPixels, kHidden, kHidden,           kHidden,
                                         kHidden,           kHidden, kClasses* kHidden, kClasses};

std::vector<Values> split(const Values& flat) {
  std::vector<Values> parts;
  auto at = flat.begin();
  for (const std::int64_t length : kLengths) {
    parts.emplace_back(at, at + length);
    at += length;
  }
  REQUIRE(at == flat.end());
  return parts;
}

Values by_parameter(const std::vector<double>& values) {
  Values flat;
  for (std::size_t p = 0; p < kLengths.size(); ++p)
    flat.insert(flat.end(), static_cast<std::size_t>(kLengths[p]), values[p]);
  return flat;
}

Values flatten(const std::vector<dataflow::NamedTensor>& tensors) {
  Values values;
  for (const auto& tensor : tensors) values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  return values;
}

// Returns the gradient of one mini-batch. Elements of running statistics hold the mini-batch's statistics.
Values gradient(TrainingRig& rig, std::uint64_t task, const Values& flat) {
  const std::int64_t batch = rig.order().batch_size();
  std::vector<std::int64_t> examples(static_cast<std::size_t>(batch));
  rig.order().indices(task, examples);
  Values images;
  Labels labels;
  std::vector<float> image(static_cast<std::size_t>(kPixels));
  for (const std::int64_t example : examples) {
    read_image(rig.data(), example, {}, image.data());
    images.insert(images.end(), image.begin(), image.end());
    labels.push_back(dataflow::class_of(rig.data(), example));
  }
  const std::vector<Values> w = split(flat);
  const engine::Shape shape{batch, kHidden};
  const Values hidden = dense(batch, images, w[0], w[1], kHidden);
  const BatchNormReference norm = batch_norm(shape, hidden, w[2], w[3], double{kEpsilon});
  const Values active = activation(norm.output, engine::ActivationKind::kRelu);
  const Values logits = dense(batch, active, w[6], w[7], kClasses);
  const LinearGradients last =
      dense_gradients(batch, active, w[6], kClasses, softmax_cross_entropy_gradient(kClasses, logits, labels));
  const Values arriving = activation_gradient(active, engine::ActivationKind::kRelu, last.input);
  const LinearGradients middle = batch_norm_gradients(shape, hidden, w[2], double{kEpsilon}, arriving);
  const LinearGradients first = dense_gradients(batch, images, w[0], kHidden, middle.input);
  Values result;
  for (const Values& part : {first.weights, first.bias, middle.weights, middle.bias, norm.mean, norm.unbiased_variance,
                             last.weights, last.bias}) {
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

RigOptions options_for(std::vector<int> learners) {
  RigOptions options;
  options.layers = network();
  options.learners = std::move(learners);
  options.batch = 8;
  options.synchronization.momentum = 0.5F;
  return options;
}

ReferenceSma reference_for(TrainingRig& rig, const RigOptions& options) {
  const int learners = rig.scheduler().learners();
  ReferenceSma reference{.learners = learners,
                         .period = options.synchronization.period,
                         .alpha = options.synchronization.pull ? double{*options.synchronization.pull} : 1.0 / learners,
                         .central_momentum = options.synchronization.momentum.value(),
                         .rule = options.rule,
                         .clip_gradient_norm = options.clip_gradient_norm,
                         .statistic_momenta = by_parameter({0, 0, 0, 0, kMomentum, kMomentum, 0, 0})};
  reference.start(flatten(rig.scheduler().snapshot()));
  if (!options.without_decay.empty()) reference.decay_multipliers = by_parameter({1, 1, 0, 0, 1, 1, 1, 1});
  return reference;
}

void check_parameters(TrainingRig& rig, const ReferenceSma& reference) {
  const std::vector<Values> expected = split(reference.central);
  const std::vector<Values> found = split(flatten(rig.scheduler().snapshot()));
  for (std::size_t p = 0; p < found.size(); ++p) {
    if (p == 1) continue;  // batch norm cancels the bias before it
    CAPTURE(p);
    CHECK(relative_error(found[p], expected[p]) < 2e-4);
  }
}

void compare_with_reference(const RigOptions& options, int rounds) {
  TrainingRig rig(options);
  ReferenceSma reference = reference_for(rig, options);
  int drops = 0;
  for (int round = 0; round < rounds; ++round) {
    const double progress =
        static_cast<double>(reference.next_task) / static_cast<double>(rig.order().batches_per_epoch());
    if (options.learning_rate.drops_before(progress) != drops) {
      drops = options.learning_rate.drops_before(progress);
      if (reference.learners > 1) reference.restart();
    }
    reference.round(options.learning_rate.at(progress, reference.learners),
                    [&](std::uint64_t task, const Values& w) { return gradient(rig, task, w); });
  }
  const scheduler::Progress progress = rig.run(rounds);
  if (reference.learners > 1) CHECK(progress.replica_distance == Approx(reference.distance).epsilon(1e-3));
  check_parameters(rig, reference);
}

constexpr std::size_t kMean = 4;
constexpr std::size_t kVariance = 5;

// The mean of the mini-batches' statistics under the weights `flat`: [running mean, running variance].
std::pair<Values, Values> statistics_under(TrainingRig& rig, const Values& flat, std::int64_t batches) {
  std::pair<Values, Values> sums{Values(kHidden, 0.0), Values(kHidden, 0.0)};
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const std::vector<Values> found = split(gradient(rig, static_cast<std::uint64_t>(batch), flat));
    for (std::size_t c = 0; c < kHidden; ++c) {
      sums.first[c] += found[kMean][c] / static_cast<double>(batches);
      sums.second[c] += found[kVariance][c] / static_cast<double>(batches);
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("running statistics on one device: each learner has its own, and z has their mean", "[training]") {
  for (const int learners : {1, 2, 4}) {
    for (const int period : {1, 3}) {
      CAPTURE(learners, period);
      RigOptions options = options_for({learners});
      options.synchronization.period = period;
      compare_with_reference(options, 20);
    }
  }
}

TEST_CASE("running statistics on two devices: z has the mean over all learners", "[training]") {
  const auto devices = two_devices(engine::host::allowed_cores());
  if (devices.empty()) skip_test("needs two cores");
  for (const int period : {1, 3}) {
    for (const auto& [first, second] : {std::pair(1, 1), std::pair(3, 1), std::pair(2, 2)}) {
      CAPTURE(period, first, second);
      RigOptions options = options_for({first, second});
      options.devices = devices;
      options.synchronization.period = period;
      compare_with_reference(options, 20);
    }
  }
}

TEST_CASE("running statistics equal z's after a restart, and ignore alpha, decay, clipping, optimizer", "[training]") {
  for (const int learners : {1, 3}) {
    CAPTURE(learners);
    RigOptions options = options_for({learners});
    options.learning_rate.curve = scheduler::StepDrops{1.0, 0.5};
    options.rule = engine::Sgd{.momentum = 0.9F, .nesterov = true, .weight_decay = 0.1F};
    options.without_decay = {dataflow::ParameterKind::kNormalization};
    options.clip_gradient_norm = 0.5F;
    if (learners > 1) options.synchronization.pull = 0.2F;
    compare_with_reference(options, 20);
  }
}

TEST_CASE("running statistics continue from z's when the number of learners changes", "[training][resize]") {
  for (const int period : {1, 3}) {
    RigOptions options = options_for({2});
    options.most_learners = 8;
    options.synchronization.period = period;
    TrainingRig rig(options);
    ReferenceSma reference = reference_for(rig, options);
    for (const int learners : {4, 1, 8, 3, 1, 2}) {
      CAPTURE(period, learners);
      rig.resize({learners});
      reference.learners = learners;
      reference.alpha = 1.0 / learners;
      reference.restart();
      for (int round = 0; round < 4; ++round) {
        reference.round(options.learning_rate.at(0.0, learners),
                        [&](std::uint64_t task, const Values& w) { return gradient(rig, task, w); });
      }
      rig.run(4);
      check_parameters(rig, reference);
    }
  }
}

TEST_CASE("a mini-batch with non-finite statistics stops the run, and z stays finite", "[training]") {
  for (const int learners : {1, 2}) {
    CAPTURE(learners);
    RigOptions options = options_for({learners});
    TrainingRig rig(options);
    std::vector<dataflow::NamedTensor> model = rig.scheduler().snapshot();
    std::ranges::fill(model[0].values, 2e19F);  // the variance overflows, and ReLU hides this from the loss
    std::ranges::fill(model[6].values, 0.0F);
    rig.scheduler().load(model);
    CHECK_THROWS_WITH(rig.run(1), ContainsSubstring("training diverged"));
    for (const auto& tensor : rig.scheduler().snapshot()) {
      CHECK(std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); }));
    }
  }
}

TEST_CASE("re-estimated statistics are the mini-batches' statistics under z, and training is unchanged", "[training]") {
  constexpr std::int64_t kBatches = 5;
  const double moving_average_epochs = GENERATE(0.0, 0.5);  // or with z's moving average
  const auto devices = two_devices(engine::host::allowed_cores());
  std::vector<std::vector<int>> arrangements{{1}, {2}, {4}};
  if (!devices.empty()) arrangements.push_back({2, 1});
  for (const std::vector<int>& learners : arrangements) {
    for (const int period : {1, 3}) {
      CAPTURE(moving_average_epochs, learners, period);
      RigOptions options = options_for(learners);
      options.synchronization.period = period;
      options.moving_average_epochs = moving_average_epochs;
      if (learners.size() > 1) options.devices = devices;
      TrainingRig averaged(options);
      options.statistic_batches = kBatches;
      TrainingRig estimated(options);
      for (int part = 0; part < 2; ++part) {
        averaged.run(4);
        estimated.run(4);
        const std::vector<Values> without = split(flatten(averaged.scheduler().snapshot()));
        const Values flat = flatten(estimated.scheduler().snapshot());
        const std::vector<Values> with = split(flat);
        for (std::size_t p = 0; p < with.size(); ++p) {
          if (p != kMean && p != kVariance) CHECK(with[p] == without[p]);
        }
        const auto [mean, variance] = statistics_under(estimated, flat, kBatches);
        CHECK(relative_error(with[kMean], mean) < 1e-5);
        CHECK(relative_error(with[kVariance], variance) < 1e-5);
        CHECK(relative_error(without[kMean], mean) > 1e-3);
        CHECK(flatten(estimated.scheduler().snapshot()) == flat);
        // Evaluation uses these statistics: evaluating the saved model alone gives the same result.
        RigOptions loading = options_for({1});
        TrainingRig loaded(loading);
        loaded.scheduler().load(estimated.scheduler().snapshot());
        CHECK(estimated.scheduler().evaluate(estimated.test_ring()).loss() ==
              Approx(loaded.scheduler().evaluate(loaded.test_ring()).loss()).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("statistics are re-estimated with a changed number of learners", "[training][resize]") {
  RigOptions options = options_for({2});
  options.most_learners = 4;
  options.statistic_batches = 3;
  TrainingRig rig(options);
  for (const int learners : {1, 4, 1, 2}) {  // with two or more cores, a single learner has more threads
    CAPTURE(learners);
    rig.resize({learners});
    rig.run(3);
    const double loss = rig.scheduler().evaluate(rig.test_ring()).loss();
    TrainingRig loaded(options_for({1}));
    loaded.scheduler().load(rig.scheduler().snapshot());
    CHECK(loss == Approx(loaded.scheduler().evaluate(loaded.test_ring()).loss()).epsilon(1e-5));
  }
}

TEST_CASE("z keeps the replicas' statistics if re-estimated ones would not be finite", "[training]") {
  for (const int learners : {1, 2}) {
    CAPTURE(learners);
    RigOptions options = options_for({learners});
    options.statistic_batches = 2;
    TrainingRig rig(options);
    std::vector<dataflow::NamedTensor> model = rig.scheduler().snapshot();
    std::ranges::fill(model[0].values, 2e19F);
    rig.scheduler().load(model);
    const std::vector<dataflow::NamedTensor> found = rig.scheduler().snapshot();
    CHECK(found[0].values == model[0].values);
    CHECK(std::ranges::all_of(found[kMean].values, [](float value) { return std::isfinite(value); }));
    CHECK(found[kVariance].values == model[kVariance].values);
  }
}

TEST_CASE("running statistics are stored after the trainable parameters and are not counted", "[training]") {
  const TrainingRig rig(options_for({1}));
  const dataflow::ParameterLayout& layout = rig.pools().front()->training_plan().parameters();
  CHECK(layout.parameters() == kHidden * kPixels + 3 * kHidden + kClasses * kHidden + kClasses);
  CHECK(layout.unpadded_elements() == layout.parameters() + 2 * kHidden);
  std::vector<std::string> names;
  for (const dataflow::ParameterEntry& entry : layout.entries()) {
    names.push_back(entry.name);
    CHECK((entry.offset >= layout.trainable_elements()) == entry.spec.is_statistic());
  }
  CHECK(names == std::vector<std::string>{"hidden.weight", "hidden.bias", "norm.weight", "norm.bias",
                                          "norm.running_mean", "norm.running_var", "logits.weight", "logits.bias"});
  const std::span<const engine::UpdateRange> ranges = layout.update_ranges();
  CHECK(ranges.back().statistic_momentum == kMomentum);
  CHECK(ranges.back().begin == layout.trainable_elements());
  CHECK(ranges.back().end == layout.elements());
}

}  // namespace arbalest::tests
