#include "jobs/options/learning_rate/curve_reader.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace arbalest::jobs {

using dataflow::above;
using dataflow::out_of_range;
using dataflow::Range;
using scheduler::LearningRateCurve;

namespace {

constexpr int kMostEpochs = 1'000'000;
constexpr Range<double> kLength = above(0.0, 1e6);  // epochs of a schedule with an end
constexpr Range<double> kPeriod{0.001, 1e6};        // epochs of one period of a repeating schedule
constexpr Range<double> kDecay = above(0.0, 1.0);   // a factor above 0
constexpr Range<double> kFactor{0.0, 1.0};          // a factor that may be 0
constexpr Range<double> kShare{0.0, 1.0, true, true};
constexpr Range<double> kGamma = above(0.0, 1000.0);
constexpr Range<double> kPower = above(0.0, 100.0);

// Sets the epochs until the end of the job. Leaves them out if no time is left, a mistake that is reported elsewhere.
template <typename Message>
void fill_epochs(Message& message, double left) {
  if (!message.has_epochs() && left > 0.0) message.set_epochs(left);
}

void fill_plateau(v1::LearningRate::Plateau& curve) {
  const scheduler::Plateau defaults;
  if (!curve.has_factor()) curve.set_factor(defaults.factor);
  if (!curve.has_patience()) curve.set_patience(defaults.patience);
  if (!curve.has_min_improvement()) curve.set_min_improvement(defaults.min_improvement);
  if (!curve.has_cooldown()) curve.set_cooldown(defaults.cooldown);
  if (!curve.has_min_factor()) curve.set_min_factor(defaults.min_factor);
}

class CurveReader {
 public:
  // `warm_up`: epochs of the warm-up.
  CurveReader(const v1::LearningRate& rate, double warm_up, dataflow::FieldIssues& issues)
      : rate_(rate), warm_up_(warm_up), issues_(issues) {}

  LearningRateCurve read() {
    using Schedule = v1::LearningRate::ScheduleCase;
    switch (rate_.schedule_case()) {
      case Schedule::kInverse:
        return read_inverse(rate_.inverse());
      case Schedule::kStep:
        return read_step(rate_.step());
      case Schedule::kMultistep:
        return read_multistep(rate_.multistep(), warm_up_);
      case Schedule::kExponential:
        require("exponential.factor", rate_.exponential().has_factor(), rate_.exponential().factor(), kDecay,
                "the factor of the learning rate for each epoch, such as 0.9");
        return scheduler::ExponentialDecay{rate_.exponential().factor()};
      case Schedule::kPolynomial:
        return read_polynomial(rate_.polynomial());
      case Schedule::kCosine:
        read_length("cosine", rate_.cosine());
        check("cosine.final_factor", rate_.cosine().final_factor(), kFactor);
        return scheduler::CosineDecay{rate_.cosine().epochs(), rate_.cosine().final_factor()};
      case Schedule::kCyclic:
        return read_cyclic(rate_.cyclic());
      case Schedule::kOneCycle:
        return read_one_cycle(rate_.one_cycle());
      case Schedule::kPlateau:
        return read_plateau(rate_.plateau());
      case Schedule::kFixed:
      case Schedule::SCHEDULE_NOT_SET:
        break;
    }
    return scheduler::FixedRate{};
  }

 private:
  void check(const std::string& field, double value, const Range<double>& range) {
    report(field, out_of_range(field.substr(field.rfind('.') + 1), value, range));
  }

  // `meaning`: explanation of the value, for a job that leaves it out.
  void require(const std::string& field, bool is_given, double value, const Range<double>& range, const char* meaning) {
    if (is_given) return check(field, value, range);
    report(field, fmt::format("{} is missing: {}", field.substr(field.rfind('.') + 1), meaning));
  }

  // `field`: path within the learning rate, "cosine.epochs".
  void report(const std::string& field, std::string message) {
    issues_.add("learning_rate." + field, std::move(message));
  }

  // If the epochs are missing, those of the job are wrong, which has been reported.
  template <typename Message>
  void read_length(const std::string& curve, const Message& message) {
    if (message.has_epochs()) check(curve + ".epochs", message.epochs(), kLength);
  }

  LearningRateCurve read_inverse(const v1::LearningRate::Inverse& curve) {
    require("inverse.gamma", curve.has_gamma(), curve.gamma(), kGamma, "how fast the rate falls, such as 0.1");
    check("inverse.power", curve.power(), kPower);
    return scheduler::InverseDecay{curve.gamma(), curve.power()};
  }

  LearningRateCurve read_step(const v1::LearningRate::Step& curve) {
    require("step.epochs", curve.has_epochs(), curve.epochs(), kPeriod,
            "the epochs between two decay steps, such as 10");
    require("step.factor", curve.has_factor(), curve.factor(), kDecay, "what the rate is multiplied by, such as 0.1");
    return scheduler::StepDrops{curve.epochs(), curve.factor()};
  }

  LearningRateCurve read_multistep(const v1::LearningRate::Multistep& curve, double warm_up) {
    if (curve.drop().empty()) {
      report("multistep", "multistep has no drop; add one, as in drop { epoch: 8 factor: 0.1 }, or choose fixed {}");
    }
    scheduler::MultistepDrops result;
    for (const v1::LearningRate::Drop& drop : curve.drop()) {
      const std::string path = fmt::format("multistep.drop[{}]", result.drops.size());
      const double last = result.drops.empty() ? 0.0 : result.drops.back().epoch;
      if (!drop.has_epoch()) {
        report(path + ".epoch", "epoch is missing: the epoch of the decay step");
      } else if (!(drop.epoch() > last)) {
        report(path + ".epoch",
               result.drops.empty()
                   ? fmt::format("epoch must be above 0, not {}", drop.epoch())
                   : fmt::format("decay steps must be in ascending order: epoch {} comes after epoch {}", drop.epoch(),
                                 last));
      } else if (drop.epoch() <= warm_up) {
        report(path + ".epoch",
               fmt::format("the decay step at epoch {} comes before the end of the warm-up, at epoch {}", drop.epoch(),
                           warm_up));
      }
      require(path + ".factor", drop.has_factor(), drop.factor(), kDecay,
              "what the rate is multiplied by, such as 0.1");
      result.drops.push_back({drop.epoch(), drop.factor()});
    }
    return result;
  }

  LearningRateCurve read_polynomial(const v1::LearningRate::Polynomial& curve) {
    read_length("polynomial", curve);
    check("polynomial.power", curve.power(), kPower);
    check("polynomial.final_factor", curve.final_factor(), kFactor);
    return scheduler::PolynomialDecay{curve.epochs(), curve.power(), curve.final_factor()};
  }

  LearningRateCurve read_cyclic(const v1::LearningRate::Cyclic& curve) {
    require("cyclic.epochs", curve.has_epochs(), curve.epochs(), kPeriod, "the length of one cycle, such as 4");
    check("cyclic.rising", curve.rising(), kShare);
    check("cyclic.start_factor", curve.start_factor(), kFactor);
    check("cyclic.amplitude_factor", curve.amplitude_factor(), kDecay);
    return scheduler::Cyclic{curve.epochs(), curve.rising(), curve.start_factor(), curve.amplitude_factor()};
  }

  LearningRateCurve read_one_cycle(const v1::LearningRate::OneCycle& curve) {
    read_length("one_cycle", curve);
    check("one_cycle.rising", curve.rising(), kShare);
    check("one_cycle.start_factor", curve.start_factor(), kFactor);
    check("one_cycle.final_factor", curve.final_factor(), kFactor);
    return scheduler::OneCycle{curve.epochs(), curve.rising(), curve.start_factor(), curve.final_factor()};
  }

  LearningRateCurve read_plateau(const v1::LearningRate::Plateau& curve) {
    check("plateau.factor", curve.factor(), kShare);
    report("plateau.patience", out_of_range("patience", curve.patience(), {0, kMostEpochs}));
    check("plateau.min_improvement", curve.min_improvement(), {0.0, 1e6});
    report("plateau.cooldown", out_of_range("cooldown", curve.cooldown(), {0, kMostEpochs}));
    check("plateau.min_factor", curve.min_factor(), dataflow::below(0.0, 1.0));
    return scheduler::Plateau{.factor = curve.factor(),
                              .patience = curve.patience(),
                              .min_improvement = curve.min_improvement(),
                              .cooldown = curve.cooldown(),
                              .min_factor = curve.min_factor()};
  }

  const v1::LearningRate& rate_;
  double warm_up_;
  dataflow::FieldIssues& issues_;
};

}  // namespace

void fill_curve(v1::LearningRate& rate, double left) {
  if (rate.schedule_case() == v1::LearningRate::SCHEDULE_NOT_SET) rate.mutable_fixed();
  if (rate.has_inverse() && !rate.inverse().has_power()) {
    rate.mutable_inverse()->set_power(scheduler::InverseDecay{}.power);
  }
  if (rate.has_polynomial()) {
    const scheduler::PolynomialDecay defaults;
    v1::LearningRate::Polynomial& curve = *rate.mutable_polynomial();
    fill_epochs(curve, left);
    if (!curve.has_power()) curve.set_power(defaults.power);
    if (!curve.has_final_factor()) curve.set_final_factor(defaults.final_factor);
  }
  if (rate.has_cosine()) {
    v1::LearningRate::Cosine& curve = *rate.mutable_cosine();
    fill_epochs(curve, left);
    if (!curve.has_final_factor()) curve.set_final_factor(scheduler::CosineDecay{}.final_factor);
  }
  if (rate.has_cyclic()) {
    const scheduler::Cyclic defaults;
    v1::LearningRate::Cyclic& curve = *rate.mutable_cyclic();
    if (!curve.has_rising()) curve.set_rising(defaults.rising);
    if (!curve.has_start_factor()) curve.set_start_factor(defaults.start_factor);
    if (!curve.has_amplitude_factor()) curve.set_amplitude_factor(defaults.amplitude_factor);
  }
  if (rate.has_one_cycle()) {
    const scheduler::OneCycle defaults;
    v1::LearningRate::OneCycle& curve = *rate.mutable_one_cycle();
    fill_epochs(curve, left);
    if (!curve.has_rising()) curve.set_rising(defaults.rising);
    if (!curve.has_start_factor()) curve.set_start_factor(defaults.start_factor);
    if (!curve.has_final_factor()) curve.set_final_factor(defaults.final_factor);
  }
  if (rate.has_plateau()) fill_plateau(*rate.mutable_plateau());
}

LearningRateCurve read_curve(const v1::LearningRate& rate, double warm_up, dataflow::FieldIssues& issues) {
  return CurveReader(rate, warm_up, issues).read();
}

}  // namespace arbalest::jobs
