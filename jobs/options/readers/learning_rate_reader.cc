#include "jobs/options/readers/learning_rate_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "jobs/messages/text.h"

namespace arbalest::jobs {

using dataflow::above;
using dataflow::out_of_range;
using dataflow::Range;
using scheduler::LearningRateCurve;
using scheduler::LearningRateSchedule;
using scheduler::RateScaling;

namespace {

constexpr double kMostBase = 1000.0;
constexpr int kMostBatchSize = 1'000'000;
constexpr Range<double> kLength = above(0.0, 1e6);  // epochs of a schedule with an end
constexpr Range<double> kPeriod{0.001, 1e6};        // epochs of one period of a repeating schedule
constexpr Range<double> kDecay = above(0.0, 1.0);   // a factor above 0
constexpr Range<double> kFactor{0.0, 1.0};          // a factor that may be 0
constexpr Range<double> kShare{0.0, 1.0, true, true};
constexpr Range<double> kGamma = above(0.0, 1000.0);
constexpr Range<double> kPower = above(0.0, 100.0);

v1::LearningRate::RateScaling to_proto(RateScaling scaling) {
  switch (scaling) {
    case RateScaling::kSqrt:
      return v1::LearningRate::SQRT;
    case RateScaling::kLinear:
      return v1::LearningRate::LINEAR;
    case RateScaling::kKeep:
      break;
  }
  return v1::LearningRate::KEEP;
}

// Sets the epochs until the end of the job. Leaves them out if no time is left, a mistake that is reported elsewhere.
template <typename Message>
void fill_epochs(Message& message, double left) {
  if (!message.has_epochs() && left > 0.0) message.set_epochs(left);
}

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
}

class LearningRateReader {
 public:
  LearningRateReader(const v1::LearningRate& rate, const v1::Training& training, dataflow::FieldIssues& issues)
      : rate_(rate), max_epochs_(training.max_epochs()), batch_size_(training.batch_size()), issues_(issues) {}

  LearningRateSchedule read() {
    const double base = read_base();
    const scheduler::WarmUp warm_up = read_warm_up();
    return {base, read_curve(warm_up), warm_up, from_proto(rate_.with_learners()), read_limit()};
  }

 private:
  // `field`: path within the learning rate, "cosine.epochs".
  void report(const std::string& field, std::string message) {
    issues_.add("learning_rate." + field, std::move(message));
  }

  // Returns the base for the job's mini-batch size.
  double read_base() {
    report("base", rate_.has_base() ? out_of_range("base", rate_.base(), above(0.0, kMostBase))
                                    : "learning_rate.base is missing: the length of the steps, such as 0.01");
    const double base = rate_.base() * batch_size_factor();
    if (base > 0.0 && base < double{std::numeric_limits<float>::min()}) {
      report("base", fmt::format("base {} is too small: steps would be 0 in float32", base));
    }
    if (rate_.base() <= kMostBase && base > kMostBase) {
      report("base", fmt::format("base {}, scaled from mini-batches of {} to {}, is {}, which is above {}",
                                 rate_.base(), rate_.for_batch_size(), batch_size_, base, kMostBase));
    }
    return base;
  }

  std::optional<double> read_limit() {
    if (!rate_.has_limit()) return std::nullopt;
    report("limit", out_of_range("limit", rate_.limit(), above(0.0, kMostBase)));
    return std::max(rate_.limit(), rate_.base());  // bounds the scaling, not the base
  }

  double batch_size_factor() {
    if (!rate_.has_for_batch_size()) {
      if (rate_.has_with_batch_size()) {
        report("with_batch_size", "with_batch_size needs for_batch_size: the mini-batch size that base was chosen for");
      }
      return 1.0;
    }
    const std::string problem = out_of_range("for_batch_size", rate_.for_batch_size(), {1, kMostBatchSize});
    report("for_batch_size", problem);
    if (!problem.empty() || batch_size_ < 1) return 1.0;
    return scheduler::factor_of(from_proto(rate_.with_batch_size()),
                                static_cast<double>(batch_size_) / rate_.for_batch_size());
  }

  scheduler::WarmUp read_warm_up() {
    if (!rate_.has_warm_up()) return {};
    const v1::LearningRate::WarmUp& warm_up = rate_.warm_up();
    if (!warm_up.has_epochs()) {
      report("warm_up.epochs", "epochs is missing: how long the rate grows, such as 5");
    } else {
      report("warm_up.epochs", out_of_range("epochs", warm_up.epochs(), kLength));
      if (max_epochs_ > 0 && warm_up.epochs() >= max_epochs_) {
        report("warm_up.epochs", fmt::format("the warm-up of {} epochs must end before the job, which takes {}",
                                             warm_up.epochs(), counted(max_epochs_, "epoch")));
      }
    }
    report("warm_up.start_factor", out_of_range("start_factor", warm_up.start_factor(), kFactor));
    return {warm_up.epochs(), warm_up.start_factor()};
  }

  LearningRateCurve read_curve(const scheduler::WarmUp& warm_up) {
    using Schedule = v1::LearningRate::ScheduleCase;
    switch (rate_.schedule_case()) {
      case Schedule::kInverse:
        return read_inverse(rate_.inverse());
      case Schedule::kStep:
        return read_step(rate_.step());
      case Schedule::kMultistep:
        return read_multistep(rate_.multistep(), warm_up.epochs);
      case Schedule::kExponential:
        require("exponential.factor", rate_.exponential().has_factor(), rate_.exponential().factor(), kDecay,
                "what the rate is multiplied by in an epoch, such as 0.9");
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
      case Schedule::kFixed:
      case Schedule::SCHEDULE_NOT_SET:
        break;
    }
    return scheduler::FixedRate{};
  }

  void check(const std::string& field, double value, const Range<double>& range) {
    report(field, out_of_range(field.substr(field.rfind('.') + 1), value, range));
  }

  // `meaning`: explanation of the value, for a job that leaves it out.
  void require(const std::string& field, bool is_given, double value, const Range<double>& range, const char* meaning) {
    if (is_given) return check(field, value, range);
    report(field, fmt::format("{} is missing: {}", field.substr(field.rfind('.') + 1), meaning));
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
    require("step.epochs", curve.has_epochs(), curve.epochs(), kPeriod, "the time between two drops, such as 10");
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
        report(path + ".epoch", "epoch is missing: when the rate drops");
      } else if (!(drop.epoch() > last)) {
        report(path + ".epoch", result.drops.empty()
                                    ? fmt::format("epoch must be above 0, not {}", drop.epoch())
                                    : fmt::format("drops must be in ascending order: epoch {} comes after epoch {}",
                                                  drop.epoch(), last));
      } else if (drop.epoch() <= warm_up) {
        report(path + ".epoch", fmt::format("the drop at epoch {} comes before the end of the warm-up, at epoch {}",
                                            drop.epoch(), warm_up));
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

  const v1::LearningRate& rate_;
  int max_epochs_;
  int batch_size_;
  dataflow::FieldIssues& issues_;
};

struct CurveEnd {
  double epochs = 0.0;
  double factor = 0.0;  // factor of the base from then on
};

// Returns none for curves without an end.
std::optional<CurveEnd> end_of(const LearningRateCurve& curve) {
  if (const auto* polynomial = std::get_if<scheduler::PolynomialDecay>(&curve)) {
    return CurveEnd{polynomial->epochs, polynomial->final_factor};
  }
  if (const auto* cosine = std::get_if<scheduler::CosineDecay>(&curve)) {
    return CurveEnd{cosine->epochs, cosine->final_factor};
  }
  if (const auto* one_cycle = std::get_if<scheduler::OneCycle>(&curve)) {
    return CurveEnd{one_cycle->epochs, one_cycle->final_factor};
  }
  return std::nullopt;
}

std::vector<double> drops_of(const LearningRateSchedule& schedule) {
  std::vector<double> epochs;
  if (const auto* multistep = std::get_if<scheduler::MultistepDrops>(&schedule.curve)) {
    for (const scheduler::LearningRateDrop& drop : multistep->drops) epochs.push_back(drop.epoch);
  }
  if (const auto* step = std::get_if<scheduler::StepDrops>(&schedule.curve)) {
    epochs.push_back(schedule.warm_up.epochs + step->epochs);  // once the first drop comes, the others are no surprise
  }
  return epochs;
}

// The first epoch from which the rate at the end rounds to 0; none if it is not 0 at the end.
std::optional<double> underflow_of(const LearningRateSchedule& schedule, int max_epochs) {
  const auto is_zero = [&](double epoch) { return schedule.at(epoch, 1) == 0.0F; };
  double above = 0.0;
  double zero = std::nextafter(static_cast<double>(max_epochs), 0.0);
  if (is_zero(above) || !is_zero(zero)) return std::nullopt;
  constexpr double kNear = 1e-3;
  while (zero - above > kNear) {
    const double middle = (above + zero) / 2.0;
    (is_zero(middle) ? zero : above) = middle;
  }
  return zero;
}

}  // namespace

RateScaling from_proto(v1::LearningRate::RateScaling scaling) {
  switch (scaling) {
    case v1::LearningRate::SQRT:
      return RateScaling::kSqrt;
    case v1::LearningRate::LINEAR:
      return RateScaling::kLinear;
    default:
      return RateScaling::kKeep;
  }
}

void fill_learning_rate(v1::LearningRate& rate, int max_epochs) {
  const LearningRateSchedule defaults;
  if (rate.has_warm_up() && !rate.warm_up().has_start_factor()) {
    rate.mutable_warm_up()->set_start_factor(defaults.warm_up.start_factor);
  }
  fill_curve(rate, max_epochs - rate.warm_up().epochs());
  if (!rate.has_with_learners()) rate.set_with_learners(to_proto(defaults.with_learners));
  if (rate.has_for_batch_size() && !rate.has_with_batch_size()) rate.set_with_batch_size(v1::LearningRate::LINEAR);
}

LearningRateSchedule read_learning_rate(const v1::LearningRate& rate, const v1::Training& training,
                                        dataflow::FieldIssues& issues) {
  return LearningRateReader(rate, training, issues).read();
}

std::vector<std::string> learning_rate_warnings(const LearningRateSchedule& schedule, int max_epochs) {
  std::vector<std::string> warnings;
  const std::string job_end = fmt::format("the job ends after {}", counted(max_epochs, "epoch"));
  for (const double epoch : drops_of(schedule)) {
    if (epoch >= max_epochs) {
      warnings.push_back(fmt::format("the drop of the learning rate at epoch {} never happens: {}", epoch, job_end));
    }
  }
  const std::optional<CurveEnd> end = end_of(schedule.curve);
  if (!end.has_value()) {
    if (const auto epoch = underflow_of(schedule, max_epochs)) {
      warnings.push_back(
          fmt::format("the learning rate becomes too small for a float32, and is 0 from epoch {:.2f} on", *epoch));
    }
    return warnings;
  }
  const double epoch = schedule.warm_up.epochs + end->epochs;
  // Tolerates rounding in sums of fractions.
  constexpr double kSame = 1e-6;
  if (epoch > max_epochs + kSame) {
    warnings.push_back(fmt::format("the learning rate's {} schedule ends at epoch {}, but {}", name_of(schedule.curve),
                                   epoch, job_end));
  } else if (epoch < max_epochs - kSame && end->factor == 0.0) {
    warnings.push_back(fmt::format("the learning rate is 0 from epoch {} on, and {}", epoch, job_end));
  }
  return warnings;
}

}  // namespace arbalest::jobs
