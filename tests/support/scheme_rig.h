// Trains a rig and the scalar reference of its scheme on the same mini-batches.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/reference_scheme.h"
#include "tests/support/softmax_regression.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {

// One scheme: the engine's options, and the reference's formula for k replicas.
struct SchemeCase {
  std::string name;
  sma::Options options;
  std::function<ReferenceFormula(int k)> formula;

  // Sets the local steps of a round, if the scheme has rounds.
  SchemeCase with_period(int period) const {
    SchemeCase changed = *this;
    changed.options.period = period;
    changed.formula = [formula = formula, period](int k) {
      ReferenceFormula of_k = formula(k);
      if (of_k.period != kNever && of_k.mode != ReferenceMode::kGradient) of_k.period = period;
      return of_k;
    };
    return changed;
  }

  static constexpr int kNever = 1 << 30;
};

inline SchemeCase sma_case() {
  return {"sma", sma::defaults_of(sma::Scheme::kSma),
          [](int k) { return ReferenceFormula{.pull = 1.0 / k, .eta = 1.0, .mu = 0.7}; }};
}

inline SchemeCase sma_with_alpha() {
  SchemeCase scheme = sma_case();
  scheme.name = "sma, alpha 0.1";
  scheme.options.pull = 0.1F;
  scheme.options.momentum = 0.5F;
  scheme.formula = [](int k) { return ReferenceFormula{.pull = 0.1, .eta = 0.1 * k, .mu = 0.5}; };
  return scheme;
}

inline SchemeCase ea_sgd_case(double momentum = 0.0) {
  SchemeCase scheme{"ea_sgd", sma::defaults_of(sma::Scheme::kEaSgd), [momentum](int k) {
                      return ReferenceFormula{.pull = 0.9 / k, .eta = 0.9, .mu = momentum, .period = 10};
                    }};
  scheme.options.momentum = static_cast<float>(momentum);
  return scheme;
}

inline SchemeCase local_sgd_case(sma::LocalState state = sma::LocalState::kKeep) {
  const bool is_zeroed = state == sma::LocalState::kZero;
  const ReferenceState other = state == sma::LocalState::kKeep ? ReferenceState::kKeep : ReferenceState::kAverage;
  const ReferenceState reference = is_zeroed ? ReferenceState::kZero : other;
  SchemeCase scheme{
      "local_sgd, state " + std::to_string(static_cast<int>(state)), sma::defaults_of(sma::Scheme::kLocalSgd),
      [reference](int) { return ReferenceFormula{.mode = ReferenceMode::kAssign, .state = reference, .period = 4}; }};
  scheme.options.local_state = state;
  return scheme;
}

inline SchemeCase bmuf_case(bool nesterov) {
  SchemeCase scheme{nesterov ? "bmuf, nesterov" : "bmuf", sma::defaults_of(sma::Scheme::kBmuf), [nesterov](int k) {
                      return ReferenceFormula{
                          .mode = ReferenceMode::kAssign, .mu = 1.0 - 1.0 / k, .nesterov = nesterov, .period = 50};
                    }};
  scheme.options.nesterov = nesterov;
  return scheme;
}

inline SchemeCase slow_mo_case() {
  return {"slow_mo", sma::defaults_of(sma::Scheme::kSlowMo), [](int k) {
            const double mu = k < 4 ? 0.0 : k < 8 ? 0.2 : k < 16 ? 0.5 : 0.6;
            return ReferenceFormula{.mode = ReferenceMode::kAssign, .mu = mu, .follows_rate = true, .period = 48};
          }};
}

inline SchemeCase slow_mo_with_momentum() {
  SchemeCase scheme{"slow_mo, momentum 0.6", sma::defaults_of(sma::Scheme::kSlowMo), [](int) {
                      return ReferenceFormula{
                          .mode = ReferenceMode::kAssign, .mu = 0.6, .follows_rate = true, .period = 48};
                    }};
  scheme.options.momentum = 0.6F;
  return scheme;
}

inline SchemeCase diloco_case() {
  return {"diloco", sma::defaults_of(sma::Scheme::kDiloco), [](int) {
            return ReferenceFormula{
                .mode = ReferenceMode::kAssign, .eta = 0.7, .mu = 0.9, .nesterov = true, .period = 500};
          }};
}

inline SchemeCase lookahead_case() {
  return {"lookahead", sma::defaults_of(sma::Scheme::kLookahead),
          [](int) { return ReferenceFormula{.mode = ReferenceMode::kAssign, .eta = 0.5, .period = 5}; }};
}

inline SchemeCase swap_case() {
  return {"swap", sma::defaults_of(sma::Scheme::kSwap),
          [](int) { return ReferenceFormula{.mode = ReferenceMode::kAssign, .period = SchemeCase::kNever}; }};
}

inline SchemeCase s_sgd_case(std::int64_t bucket_bytes = std::int64_t{4} << 20U) {
  SchemeCase scheme{"s_sgd", sma::defaults_of(sma::Scheme::kSSgd),
                    [](int) { return ReferenceFormula{.mode = ReferenceMode::kGradient}; }};
  scheme.options.bucket_bytes = bucket_bytes;
  return scheme;
}

inline std::vector<SchemeCase> all_schemes() {
  return {sma_case(),
          sma_with_alpha(),
          ea_sgd_case(),
          ea_sgd_case(0.5),
          local_sgd_case(),
          local_sgd_case(sma::LocalState::kZero),
          local_sgd_case(sma::LocalState::kAverage),
          bmuf_case(false),
          bmuf_case(true),
          slow_mo_case(),
          slow_mo_with_momentum(),
          diloco_case(),
          lookahead_case(),
          swap_case(),
          s_sgd_case()};
}

// Learning rate and momentum are low, so that training stays stable even if outer momentum multiplies them tenfold.
inline RigOptions scheme_options(const std::vector<int>& learners, std::vector<std::string> devices = {"cpu"}) {
  RigOptions options;
  options.devices = std::move(devices);
  options.learners = learners;
  options.learning_rate.base = 0.05;
  options.rule = engine::Sgd{.momentum = 0.5F, .weight_decay = 0.01F};
  return options;
}

// Rig and reference start from the same model.
class SchemeRig {
 public:
  // options.rule must be Sgd. The scheme replaces options.synchronization.
  SchemeRig(RigOptions options, const SchemeCase& scheme)
      : options_(with_scheme(std::move(options), scheme)), rig_(options_), regression_(rig_), scheme_(scheme) {
    const auto& rule = std::get<engine::Sgd>(options_.rule);
    reference_.local_momentum = static_cast<double>(rule.momentum);
    reference_.weight_decay = static_cast<double>(rule.weight_decay);
    if (options_.clip_gradient_norm) reference_.clip_norm = static_cast<double>(*options_.clip_gradient_norm);
    set_formula();
    reference_.start(flatten(rig_.scheduler().snapshot()), learners());
  }

  TrainingRig& rig() { return rig_; }
  int learners() { return rig_.scheduler().learners(); }

  // An iteration is a round of sma and ea_sgd, and one step of the other schemes.
  void run(int iterations) {
    for (int iteration = 0; iteration < iterations; ++iteration) {
      const double progress =
          static_cast<double>(reference_.next_task) / static_cast<double>(rig_.order().batches_per_epoch());
      const bool is_pulled = reference_.formula.mode == ReferenceMode::kPull;
      if (options_.learning_rate.drops_before(progress) != drops_) {
        drops_ = options_.learning_rate.drops_before(progress);
        if (is_pulled && learners() > 1) reference_.restart(learners(), false);
      }
      const double rate = static_cast<double>(options_.learning_rate.at(progress, learners()));
      const int steps = is_pulled ? reference_.formula.period : 1;
      for (int step = 0; step < steps; ++step) reference_.step(rate, regression_.gradient());
    }
    const scheduler::Progress progress = rig_.run(iterations);
    tasks_ += progress.tasks;
    loss_sum_ += progress.sums.loss();
  }
  // Only for schemes with a fixed period.
  void run_rounds(int rounds) {
    const bool has_long_rounds = reference_.formula.mode == ReferenceMode::kAssign;
    run(has_long_rounds ? rounds * reference_.formula.period : rounds);
  }

  void resize(const std::vector<int>& learners_by_device) {
    rig_.resize(learners_by_device);
    regroup(false);
  }
  void switch_to(const SchemeCase& scheme, scheduler::RateScaling scaling, const std::vector<int>& learners_by_device) {
    const int before = learners();
    for (std::size_t d = 0; d < learners_by_device.size(); ++d) rig_.pools()[d]->prepare(learners_by_device[d]);
    rig_.scheduler().switch_to(scheme.options, scaling, learners_by_device);
    scheme_ = scheme;
    options_.learning_rate.with_learners = scaling;
    // Learners keep their momenta if their number stays and the new scheme keeps a momentum for each replica.
    const ReferenceFormula next = scheme.formula(learners());
    regroup(learners() == before && next.mode == ReferenceMode::kAssign && next.state != ReferenceState::kZero);
  }

  // Returns |rig's model - reference's model| / |reference's model|.
  double distance() { return relative_distance(flatten(rig_.scheduler().snapshot()), reference_.model()); }
  const ReferenceScheme& reference() const { return reference_; }

  void check() {
    CAPTURE(scheme_.name, learners(), scheme_.options.period, reference_.next_task);
    CHECK(tasks_ == static_cast<std::int64_t>(reference_.next_task));  // each mini-batch once
    CHECK(loss_sum_ == Approx(regression_.loss_sum()).epsilon(1e-4));
    CHECK(distance() < kTolerance);
  }

  static constexpr double kTolerance = 1e-4;

 private:
  static RigOptions with_scheme(RigOptions options, const SchemeCase& scheme) {
    options.synchronization = scheme.options;
    return options;
  }
  void set_formula() {
    reference_.formula = scheme_.formula(learners());
    reference_.longest_period =
        std::max<int>(reference_.formula.period, static_cast<int>(rig_.order().batches_per_epoch()) / (2 * learners()));
  }
  void regroup(bool keeps_local_momenta) {
    reference_.restart(learners(), keeps_local_momenta);  // with the old formula
    set_formula();
  }

  RigOptions options_;
  TrainingRig rig_;
  SoftmaxRegression regression_;
  SchemeCase scheme_;
  ReferenceScheme reference_;
  int drops_ = 0;
  std::int64_t tasks_ = 0;
  double loss_sum_ = 0.0;
};

}  // namespace arbalest::tests
