// Switches between schemes agree with the scalar reference. Reading the model in the middle of a round changes nothing.
#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using scheduler::RateScaling;
using tests::all_schemes;
using tests::RigOptions;
using tests::scheme_options;
using tests::SchemeCase;
using tests::SchemeRig;

}  // namespace

TEST_CASE("any scheme may be followed by any other", "[scheme]") {
  bool ends_round = false;  // alternates
  for (const SchemeCase& from : all_schemes()) {
    for (const SchemeCase& to : all_schemes()) {
      CAPTURE(from.name, to.name);
      RigOptions options = scheme_options({3});
      options.switches = {to.with_period(2).options};
      SchemeRig rig(options, from.with_period(3));
      rig.run(ends_round ? 6 : 5);  // of steps, or of rounds of sma and ea_sgd
      rig.switch_to(to.with_period(2), RateScaling::kSqrt, {3});
      rig.check();  // the switch keeps the model
      rig.run(5);
      rig.check();
      ends_round = !ends_round;
    }
  }
}

TEST_CASE("a switch may change the number of learners, on one device and on two", "[scheme]") {
  struct Step {
    SchemeCase scheme;
    std::vector<int> one_device;
    std::vector<int> two_devices;
  };
  const std::vector<Step> steps = {
      {tests::swap_case(), {4}, {2, 2}},      {tests::sma_case(), {2}, {1, 1}},
      {tests::local_sgd_case(), {1}, {1, 1}}, {tests::diloco_case(), {3}, {1, 2}},
      {tests::s_sgd_case(), {2}, {2, 1}},     {tests::local_sgd_case(sma::LocalState::kAverage), {2}, {2, 1}}};
  for (const auto& devices : tests::device_lists()) {
    const bool uses_two = devices.size() == 2;
    RigOptions options = scheme_options(tests::spread(4, devices), devices);
    options.most_learners = 4;
    for (const Step& step : steps) options.switches.push_back(step.scheme.with_period(3).options);
    SchemeRig rig(options, tests::s_sgd_case(64));
    rig.run(4);
    for (const Step& step : steps) {
      rig.switch_to(step.scheme.with_period(3), RateScaling::kKeep, uses_two ? step.two_devices : step.one_device);
      rig.run(4);
      rig.check();
    }
  }
}

TEST_CASE("the model in the middle of a round is the replicas' mean, and reading it does not change the training",
          "[scheme]") {
  std::vector<RigOptions> all_options = {scheme_options({1}), scheme_options({4})};
  for (const auto& devices : tests::device_lists()) {
    all_options.push_back(scheme_options(tests::spread(3, devices), devices));
  }
  for (const RigOptions& options : all_options) {
    for (const SchemeCase& scheme : all_schemes()) {
      const SchemeCase of_five = scheme.with_period(5);
      CAPTURE(scheme.name, options.learners);
      SchemeRig alone(options, of_five);
      SchemeRig watched(options, of_five);
      for (int step = 0; step < 12; ++step) {
        alone.run(1);
        watched.run(1);
        CHECK(watched.distance() < SchemeRig::kTolerance);
        watched.rig().scheduler().evaluate(watched.rig().test_ring());
      }
      CHECK(tests::learner_weights(watched.rig()) == tests::learner_weights(alone.rig()));
      CHECK(tests::same_bytes(tests::model_weights(watched.rig()), tests::model_weights(alone.rig())));
    }
  }
}
