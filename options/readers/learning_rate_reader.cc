#include "options/readers/learning_rate_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"
#include "messages/text.h"
#include "options/learning_rate/curve_reader.h"
#include "options/learning_rate/restart_reader.h"

namespace arbalest::jobs {

using scheduler::LearningRateCurve;
using scheduler::LearningRateSchedule;
using scheduler::RateScaling;

namespace {

constexpr double kMostBase = 1000.0;

class LearningRateReader {
 public:
  LearningRateReader(const v1::LearningRate& rate, const v1::Training& training, dataflow::FieldIssues& issues)
      : rate_(rate), max_epochs_(training.max_epochs()), batch_size_(training.batch_size()), issues_(issues) {}

  LearningRateSchedule read() {
    check_multipliers();
    dataflow::check_fields(rate_, "learning_rate", issues_);
    const double base = read_base();
    const scheduler::WarmUp warm_up = read_warm_up();
    return {.base = base,
            .curve = read_curve(rate_, warm_up.epochs, issues_),
            .warm_up = warm_up,
            .with_learners = from_proto(rate_.with_learners()),
            .limit = read_limit(),
            .restarts = read_restarts(rate_, warm_up.epochs, issues_)};
  }

 private:
  // `field`: path within the learning rate, "cosine.epochs".
  void report(const std::string& field, std::string message) {
    issues_.add("learning_rate." + field, std::move(message));
  }

  void check_multipliers() {
    for (int i = 0; i < rate_.multiplier_size(); ++i) {
      const v1::LearningRate::Multiplier& multiplier = rate_.multiplier(i);
      if (!multiplier.has_factor() || multiplier.factor() != 0.0F || multiplier.parameters().empty()) continue;
      report(fmt::format("multiplier[{}].factor", i),
             fmt::format("{}; to leave parameters as they are, use training {{ freeze: \"{}\" }}",
                         dataflow::field_problem(multiplier, "factor"), multiplier.parameters(0)));
    }
  }

  // Returns the base for the job's mini-batch size.
  double read_base() {
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
    return std::max(rate_.limit(), rate_.base());  // bounds the scaling, not the base
  }

  double batch_size_factor() {
    if (!rate_.has_for_batch_size()) {
      if (rate_.has_with_batch_size()) {
        report("with_batch_size", "with_batch_size needs for_batch_size: the mini-batch size that base was chosen for");
      }
      return 1.0;
    }
    if (issues_.has("learning_rate.for_batch_size") || batch_size_ < 1) return 1.0;
    return scheduler::factor_of(from_proto(rate_.with_batch_size()),
                                static_cast<double>(batch_size_) / rate_.for_batch_size());
  }

  scheduler::WarmUp read_warm_up() {
    if (!rate_.has_warm_up()) return {};
    const v1::LearningRate::WarmUp& warm_up = rate_.warm_up();
    if (max_epochs_ > 0 && warm_up.epochs() >= max_epochs_) {
      report("warm_up.epochs", fmt::format("the warm-up of {} epochs must end before the job, which takes {}",
                                           warm_up.epochs(), counted(max_epochs_, "epoch")));
    }
    return {warm_up.epochs(), warm_up.start_factor()};
  }

  const v1::LearningRate& rate_;
  int max_epochs_;
  int batch_size_;
  dataflow::FieldIssues& issues_;
};

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
    case v1::LearningRate::SQRT: return RateScaling::kSqrt;
    case v1::LearningRate::LINEAR: return RateScaling::kLinear;
    default: return RateScaling::kKeep;
  }
}

void fill_learning_rate(v1::LearningRate& rate, int max_epochs) {
  dataflow::fill_fields(rate);
  const double first_end = rate.restart().empty() ? max_epochs : rate.restart(0).epoch();
  fill_curve(rate, first_end - rate.warm_up().epochs());
  fill_restarts(rate, max_epochs);
  if (rate.has_for_batch_size()) dataflow::fill_field(rate, "with_batch_size");
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
      warnings.push_back(
          fmt::format("the decay step of the learning rate at epoch {} never happens: {}", epoch, job_end));
    }
  }
  const auto* plateau = std::get_if<scheduler::Plateau>(&schedule.curve);
  // The first epoch sets the best score, and those within the warm-up are not judged.
  const double first_judged = std::max(2.0, std::ceil(schedule.warm_up.epochs));
  if (plateau != nullptr && first_judged + plateau->patience >= max_epochs) {
    warnings.push_back(fmt::format("learning_rate.plateau never drops the learning rate: its patience is {}, and {}",
                                   counted(plateau->patience, "epoch"), job_end));
  }
  const std::optional<scheduler::CurveEnd> end = schedule.end();
  if (!end.has_value()) {
    if (const auto epoch = underflow_of(schedule, max_epochs)) {
      warnings.push_back(
          fmt::format("the learning rate becomes too small for a float32, and is 0 from epoch {:.2f} on", *epoch));
    }
    return warnings;
  }
  for (const scheduler::Restart& restart : schedule.restarts) {
    if (restart.epoch < max_epochs) continue;
    warnings.push_back(
        fmt::format("the restart of the learning rate at epoch {} never happens: {}", restart.epoch, job_end));
  }
  const double epoch = end->epochs;
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
