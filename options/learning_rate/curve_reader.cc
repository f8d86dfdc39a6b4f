#include "options/learning_rate/curve_reader.h"

#include <string>

#include <fmt/format.h>

namespace arbalest::jobs {

using scheduler::LearningRateCurve;

namespace {

// Sets the epochs until the end of the job. Leaves them out if no time is left, a mistake that is reported elsewhere.
template <typename Message>
void fill_epochs(Message& message, double left) {
  if (!message.has_epochs() && left > 0.0) message.set_epochs(left);
}

LearningRateCurve read_multistep(const v1::LearningRate::Multistep& curve, double warm_up,
                                 dataflow::FieldIssues& issues) {
  const std::string path = "learning_rate.multistep";
  if (curve.drop().empty()) {
    issues.add(path, "multistep has no drop; add one, as in drop { epoch: 8 factor: 0.1 }, or choose fixed {}");
  }
  scheduler::MultistepDrops result;
  for (const v1::LearningRate::Drop& drop : curve.drop()) {
    const std::string epoch = fmt::format("{}.drop[{}].epoch", path, result.drops.size());
    const double last = result.drops.empty() ? 0.0 : result.drops.back().epoch;
    if (!(drop.epoch() > last)) {
      issues.add(epoch, result.drops.empty()
                            ? fmt::format("epoch must be above 0, not {}", drop.epoch())
                            : fmt::format("decay steps must be in ascending order: epoch {} comes after epoch {}",
                                          drop.epoch(), last));
    } else if (drop.epoch() <= warm_up) {
      issues.add(epoch, fmt::format("the decay step at epoch {} comes before the end of the warm-up, at epoch {}",
                                    drop.epoch(), warm_up));
    }
    result.drops.push_back({drop.epoch(), drop.factor()});
  }
  return result;
}

}  // namespace

void fill_curve(v1::LearningRate& rate, double left) {
  if (rate.has_polynomial()) fill_epochs(*rate.mutable_polynomial(), left);
  if (rate.has_cosine()) fill_epochs(*rate.mutable_cosine(), left);
  if (rate.has_one_cycle()) fill_epochs(*rate.mutable_one_cycle(), left);
}

LearningRateCurve read_curve(const v1::LearningRate& rate, double warm_up, dataflow::FieldIssues& issues) {
  using Schedule = v1::LearningRate::ScheduleCase;
  switch (rate.schedule_case()) {
    case Schedule::kInverse: return scheduler::InverseDecay{rate.inverse().gamma(), rate.inverse().power()};
    case Schedule::kStep: return scheduler::StepDrops{rate.step().epochs(), rate.step().factor()};
    case Schedule::kMultistep: return read_multistep(rate.multistep(), warm_up, issues);
    case Schedule::kExponential: return scheduler::ExponentialDecay{rate.exponential().factor()};
    case Schedule::kPolynomial:
      return scheduler::PolynomialDecay{rate.polynomial().epochs(), rate.polynomial().power(),
                                        rate.polynomial().final_factor()};
    case Schedule::kCosine: return scheduler::CosineDecay{rate.cosine().epochs(), rate.cosine().final_factor()};
    case Schedule::kCyclic:
      return scheduler::Cyclic{rate.cyclic().epochs(), rate.cyclic().rising(), rate.cyclic().start_factor(),
                               rate.cyclic().amplitude_factor()};
    case Schedule::kOneCycle:
      return scheduler::OneCycle{rate.one_cycle().epochs(), rate.one_cycle().rising(), rate.one_cycle().start_factor(),
                                 rate.one_cycle().final_factor()};
    case Schedule::kPlateau:
      return scheduler::Plateau{.factor = rate.plateau().factor(),
                                .patience = rate.plateau().patience(),
                                .min_improvement = rate.plateau().min_improvement(),
                                .cooldown = rate.plateau().cooldown(),
                                .min_factor = rate.plateau().min_factor()};
    case Schedule::kFixed:
    case Schedule::SCHEDULE_NOT_SET: break;
  }
  return scheduler::FixedRate{};
}

}  // namespace arbalest::jobs
