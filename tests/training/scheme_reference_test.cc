// Trains with every scheme, using input, learners, scheduler and synchronizer, and compares the model with the scalar
// reference (tests/support/reference_scheme.h).
#include <utility>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/skip.h"

namespace {

using namespace arbalest;
using scheduler::RateScaling;
using tests::all_schemes;
using tests::RigOptions;
using tests::scheme_options;
using tests::SchemeCase;
using tests::SchemeRig;

constexpr int kPeriods[] = {1, 3, 7};

std::vector<std::string> two_devices_or_skip() {
  const auto devices = tests::two_devices(engine::host::allowed_cores());
  if (devices.empty()) tests::skip_test("needs two cores");
  return devices;
}

// Trains complete rounds, then one more iteration.
void compare_with_reference(const RigOptions& options, const SchemeCase& scheme) {
  constexpr int kRounds = 4;
  constexpr int kStepsOfSwap = 9;
  SchemeRig rig(options, scheme);
  const bool has_rounds = scheme.options.scheme != sma::Scheme::kSwap;
  if (has_rounds) {
    rig.run_rounds(kRounds);
  } else {
    rig.run(kStepsOfSwap);
  }
  rig.check();
  rig.run(1);
  rig.check();
}

}  // namespace

TEST_CASE("training on one device agrees with the reference of every scheme", "[scheme]") {
  for (const SchemeCase& scheme : all_schemes()) {
    for (const int learners : {1, 2, 3, 4, 8}) {
      for (const int period : kPeriods) {
        compare_with_reference(scheme_options({learners}), scheme.with_period(period));
      }
    }
  }
}

TEST_CASE("training on two devices agrees with the reference of every scheme", "[scheme]") {
  const auto devices = two_devices_or_skip();
  for (const SchemeCase& scheme : all_schemes()) {
    for (const auto& [first, second] : {std::pair(1, 1), std::pair(2, 1), std::pair(2, 2), std::pair(4, 4)}) {
      for (const int period : kPeriods) {
        compare_with_reference(scheme_options({first, second}, devices), scheme.with_period(period));
      }
    }
  }
}

TEST_CASE("drops of the learning rate restart sma and ea_sgd, and scale the momentum of slow_mo", "[scheme]") {
  for (const SchemeCase& scheme : all_schemes()) {
    for (const int learners : {1, 3}) {
      RigOptions options = scheme_options({learners});
      options.learning_rate.curve = scheduler::MultistepDrops{{{0.5, 0.5}, {1.0, 0.2}}};
      SchemeRig rig(options, scheme.with_period(2));
      const int steps = 36 / learners;  // 24 mini-batches an epoch
      rig.run(scheme.options.steps_per_iteration() > 1 ? steps / 2 : steps);
      rig.check();
    }
  }
}

TEST_CASE("a continuous learning rate is read at each local step, and by sma and ea_sgd at each round", "[scheme]") {
  for (const SchemeCase& scheme : all_schemes()) {
    RigOptions options = scheme_options({3});
    options.learning_rate.curve = scheduler::CosineDecay{.epochs = 2.0};
    options.learning_rate.warm_up = {.epochs = 0.5, .start_factor = 0.1};
    SchemeRig rig(options, scheme.with_period(3));
    rig.run(9);
    rig.check();
  }
}

TEST_CASE("s_sgd clips the averaged gradient, other schemes each learner's own", "[scheme]") {
  for (const SchemeCase& scheme : {tests::local_sgd_case(), tests::s_sgd_case()}) {
    RigOptions options = scheme_options({3});
    options.clip_gradient_norm = 0.4F;  // the norms are about 0.6
    SchemeRig rig(options, scheme.with_period(2));
    rig.run(20);
    rig.check();
  }
}

TEST_CASE("QSR lengthens rounds as the learning rate drops, to half an epoch at most", "[scheme]") {
  SchemeCase scheme = tests::local_sgd_case();
  constexpr double kCoefficient = 0.105;  // 4 steps at 0.05, 17 at 0.025
  scheme.options.rate_coefficient = kCoefficient;
  scheme.options.period = 2;
  scheme.formula = [](int) {
    return tests::ReferenceFormula{
        .mode = tests::ReferenceMode::kAssign, .period = 2, .rate_coefficient = kCoefficient};
  };
  for (const std::int64_t examples : {96, 480}) {  // half an epoch has 6 and 30 steps of a learner
    RigOptions options = scheme_options({2});
    options.examples = examples;
    options.learning_rate.curve = scheduler::MultistepDrops{{{0.5, 0.5}}};
    SchemeRig rig(options, scheme);
    for (int part = 0; part < 12; ++part) {
      rig.run(7);
      rig.check();
    }
  }
}

TEST_CASE("every scheme continues from its model with another number of learners", "[scheme]") {
  for (const SchemeCase& scheme : all_schemes()) {
    RigOptions options = scheme_options({2});
    options.most_learners = 8;
    options.learning_rate.with_learners = RateScaling::kSqrt;
    SchemeRig rig(options, scheme.with_period(3));
    for (const int learners : {4, 1, 3, 8, 2}) {
      rig.resize({learners});
      rig.run(4);  // schemes that assign the central model end in the middle of a round
      rig.check();
    }
  }
}

TEST_CASE("every scheme continues with another number of learners on two devices", "[scheme]") {
  const auto devices = two_devices_or_skip();
  for (const SchemeCase& scheme : all_schemes()) {
    RigOptions options = scheme_options({1, 1}, devices);
    options.most_learners = 8;
    SchemeRig rig(options, scheme.with_period(3));
    for (const std::vector<int>& learners : {std::vector{2, 2}, std::vector{1, 3}, std::vector{2, 1}}) {
      rig.resize(learners);
      rig.run(4);
      rig.check();
    }
  }
}
