#include "jobs/options/readers/synchronization_reader.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "jobs/messages/text.h"
#include "jobs/options/readers/learners_reader.h"
#include "jobs/options/readers/learning_rate_reader.h"

namespace arbalest::jobs {

using dataflow::above;
using dataflow::below;
using dataflow::out_of_range;
using sma::LocalState;
using sma::Options;
using sma::Scheme;

namespace {

constexpr int kMaxPulledPeriod = 1000;  // learners hold the results of a whole round
constexpr int kMaxPeriod = 100000;
constexpr double kMaxBucketMb = 1024.0;
constexpr int kMostStaleness = 1000;
constexpr double kWarmStartEpochs = 1.0;
constexpr int kMostCompareRounds = 1'000'000'000;
constexpr double kMegabyte = 1 << 20;

v1::Synchronization::LocalState message_of(LocalState state) {
  switch (state) {
    case LocalState::kZero:
      return v1::Synchronization::ZERO;
    case LocalState::kAverage:
      return v1::Synchronization::AVERAGE;
    case LocalState::kKeep:
      break;
  }
  return v1::Synchronization::KEEP;
}

LocalState local_state_of(v1::Synchronization::LocalState state) {
  if (state == v1::Synchronization::ZERO) return LocalState::kZero;
  return state == v1::Synchronization::AVERAGE ? LocalState::kAverage : LocalState::kKeep;
}

// Sets the defaults of a scheme that assigns the center.
template <typename Kind>
void fill_outer(Kind& kind, const Options& defaults) {
  if (!kind.has_rate()) kind.set_rate(defaults.outer_rate);
  if (!kind.has_momentum() && defaults.momentum) kind.set_momentum(*defaults.momentum);
  if (!kind.has_period()) kind.set_period(defaults.period);
  if (!kind.has_local_state()) kind.set_local_state(message_of(defaults.local_state));
}

void fill(v1::Sma& kind) {
  const Options defaults = sma::defaults_of(Scheme::kSma);
  if (!kind.has_central_momentum()) kind.set_central_momentum(*defaults.momentum);
  if (!kind.has_period()) kind.set_period(defaults.period);
}

void fill(v1::EaSgd& kind) {
  const Options defaults = sma::defaults_of(Scheme::kEaSgd);
  if (!kind.has_beta()) kind.set_beta(defaults.pull_of_all);
  if (!kind.has_period()) kind.set_period(defaults.period);
}

void fill(v1::SSgd& kind) {
  const auto bytes = static_cast<double>(sma::defaults_of(Scheme::kSSgd).bucket_bytes);
  if (!kind.has_bucket_mb()) kind.set_bucket_mb(bytes / kMegabyte);
}

void fill(v1::LocalSgd& kind) {
  const Options defaults = sma::defaults_of(Scheme::kLocalSgd);
  if (!kind.has_period()) kind.set_period(defaults.period);
  if (!kind.has_local_state()) kind.set_local_state(message_of(defaults.local_state));
}

void fill(v1::Bmuf& kind) {
  const Options defaults = sma::defaults_of(Scheme::kBmuf);
  fill_outer(kind, defaults);
  if (!kind.has_nesterov()) kind.set_nesterov(defaults.nesterov);
}

void fill(v1::SlowMo& kind) { fill_outer(kind, sma::defaults_of(Scheme::kSlowMo)); }
void fill(v1::Diloco& kind) { fill_outer(kind, sma::defaults_of(Scheme::kDiloco)); }
void fill(v1::Lookahead& kind) { fill_outer(kind, sma::defaults_of(Scheme::kLookahead)); }
void fill(v1::IndependentLearners& /*kind*/) {}

void fill(v1::AsyncSgd& kind) {
  const Options defaults = sma::defaults_of(Scheme::kAsyncSgd);
  if (!kind.has_push_every()) kind.set_push_every(defaults.period);
  if (!kind.has_warm_start_epochs()) kind.set_warm_start_epochs(0.0);
  if (!kind.has_scale_by_staleness()) kind.set_scale_by_staleness(defaults.scale_by_staleness);
}

// Calls visit(kind, "sma") with the chosen alternative; returns false if there is none. Message: Synchronization or
// Switch, which have the same alternatives.
template <typename Message, typename Visit>
bool visit_kind(Message& message, const Visit& visit) {
  const auto try_kind = [&](bool is_chosen, auto&& get, const char* name) {
    if (is_chosen) visit(get(), name);
    return is_chosen;
  };
  return try_kind(
             message.has_sma(), [&]() -> auto& { return *message.mutable_sma(); }, "sma") ||
         try_kind(
             message.has_ea_sgd(), [&]() -> auto& { return *message.mutable_ea_sgd(); }, "ea_sgd") ||
         try_kind(
             message.has_s_sgd(), [&]() -> auto& { return *message.mutable_s_sgd(); }, "s_sgd") ||
         try_kind(
             message.has_local_sgd(), [&]() -> auto& { return *message.mutable_local_sgd(); }, "local_sgd") ||
         try_kind(
             message.has_bmuf(), [&]() -> auto& { return *message.mutable_bmuf(); }, "bmuf") ||
         try_kind(
             message.has_slow_mo(), [&]() -> auto& { return *message.mutable_slow_mo(); }, "slow_mo") ||
         try_kind(
             message.has_diloco(), [&]() -> auto& { return *message.mutable_diloco(); }, "diloco") ||
         try_kind(
             message.has_lookahead(), [&]() -> auto& { return *message.mutable_lookahead(); }, "lookahead") ||
         try_kind(
             message.has_swap(), [&]() -> auto& { return *message.mutable_swap(); }, "swap") ||
         try_kind(
             message.has_async_sgd(), [&]() -> auto& { return *message.mutable_async_sgd(); }, "async_sgd");
}

// Reads the alternatives of a oneof into sma::Options. `path`: path of the alternative.
class KindReader {
 public:
  KindReader(std::string path, dataflow::FieldIssues& issues) : path_(std::move(path)), issues_(issues) {}

  Options read(const v1::Sma& kind) {
    Options options = sma::defaults_of(Scheme::kSma);
    options.momentum = checked("central_momentum", kind.central_momentum(), below(0.0F, 1.0F));
    options.period = checked("period", kind.period(), {1, kMaxPulledPeriod});
    if (kind.has_alpha()) options.pull = checked("alpha", kind.alpha(), above(0.0F, 1.0F));
    return options;
  }
  Options read(const v1::EaSgd& kind) {
    Options options = sma::defaults_of(Scheme::kEaSgd);
    options.pull_of_all = checked("beta", kind.beta(), {0.0F, 2.0F, true, true});
    options.period = checked("period", kind.period(), {1, kMaxPulledPeriod});
    return options;
  }
  Options read(const v1::SSgd& kind) {
    Options options = sma::defaults_of(Scheme::kSSgd);
    const double mb = checked("bucket_mb", kind.bucket_mb(), above(0.0, kMaxBucketMb));
    options.bucket_bytes = std::max(std::int64_t{1}, static_cast<std::int64_t>(mb * kMegabyte));
    return options;
  }
  Options read(const v1::LocalSgd& kind) {
    Options options = sma::defaults_of(Scheme::kLocalSgd);
    options.period = checked("period", kind.period(), {1, kMaxPeriod});
    options.local_state = local_state_of(kind.local_state());
    if (kind.has_qsr()) options.rate_coefficient = checked("qsr", kind.qsr(), above(0.0, 1e6));
    return options;
  }
  Options read(const v1::Bmuf& kind) {
    Options options = read_outer(kind, Scheme::kBmuf);
    options.nesterov = kind.nesterov();
    return options;
  }
  Options read(const v1::SlowMo& kind) { return read_outer(kind, Scheme::kSlowMo); }
  Options read(const v1::Diloco& kind) { return read_outer(kind, Scheme::kDiloco); }
  Options read(const v1::Lookahead& kind) { return read_outer(kind, Scheme::kLookahead); }
  Options read(const v1::IndependentLearners& /*kind*/) { return sma::defaults_of(Scheme::kSwap); }
  Options read(const v1::AsyncSgd& kind) {
    Options options = sma::defaults_of(Scheme::kAsyncSgd);
    if (kind.has_staleness()) options.staleness = checked("staleness", kind.staleness(), {0, kMostStaleness});
    options.period = checked("push_every", kind.push_every(), {1, kMaxPulledPeriod});
    options.scale_by_staleness = kind.scale_by_staleness();
    return options;
  }

 private:
  template <typename T>
  T checked(const char* field, T value, const dataflow::Range<T>& range) {
    issues_.add(path_ + "." + field, out_of_range(field, value, range));
    return value;
  }

  template <typename Kind>
  Options read_outer(const Kind& kind, Scheme scheme) {
    Options options = sma::defaults_of(scheme);
    options.outer_rate = checked("rate", kind.rate(), {0.0F, 100.0F, true, false});
    if (kind.has_momentum()) options.momentum = checked("momentum", kind.momentum(), below(0.0F, 1.0F));
    options.period = checked("period", kind.period(), {1, kMaxPeriod});
    options.local_state = local_state_of(kind.local_state());
    return options;
  }

  std::string path_;
  dataflow::FieldIssues& issues_;
};

// Message: Synchronization or Switch. `path`: path of that message.
struct PlacedOptions {
  Options options;
  std::string path;  // path of the alternative; "" if none is chosen
};

template <typename Message>
PlacedOptions read_kind(Message message, const std::string& path, dataflow::FieldIssues& issues) {
  PlacedOptions read;
  visit_kind(message, [&](const auto& kind, const char* name) {
    read.path = path + "." + name;
    read.options = KindReader(read.path, issues).read(kind);
  });
  return read;
}

// Whether it is the switch that ends the warm start of the first scheme.
bool is_warm_start(const SynchronizationSwitch& each) { return each.path == "synchronization.async_sgd"; }

class SwitchReader {
 public:
  SwitchReader(const v1::Switch& message, std::string path, JobOptions& options, dataflow::FieldIssues& issues)
      : message_(message), path_(std::move(path)), options_(options), issues_(issues) {}

  void read() {
    SynchronizationSwitch read;
    read.at_epoch = read_epoch();
    const PlacedOptions kind = read_kind(message_, path_, issues_);
    read.to = kind.options;
    read.path = kind.path;
    if (kind.path.empty()) {
      issues_.add(path_, "the switch names no kind; add one, as in switch { at_epoch: 25 local_sgd {} }");
    }
    if (message_.async_sgd().warm_start_epochs() != 0.0) {
      issues_.add(kind.path + ".warm_start_epochs",
                  "a switch to async_sgd has no warm start, because the scheme before it is one; remove "
                  "warm_start_epochs");
    }
    read.with_learners = message_.has_with_learners() ? from_proto(message_.with_learners()) : previous_scaling();
    read.learners_per_device = read_learners();
    check_order(read);
    options_.switches.push_back(std::move(read));
  }

 private:
  scheduler::RateScaling previous_scaling() const {
    return options_.switches.empty() ? options_.learning_rate.with_learners : options_.switches.back().with_learners;
  }

  std::vector<int> previous_learners() const {
    std::vector<int> learners = options_.learners_per_device;
    for (const SynchronizationSwitch& each : options_.switches) {
      if (!each.learners_per_device.empty()) learners = each.learners_per_device;
    }
    return learners;
  }

  double read_epoch() {
    if (message_.has_at_epoch()) return message_.at_epoch();
    if (!message_.has_at_drop()) {
      issues_.add(path_, "the switch does not say when; add at_epoch, as in switch { at_epoch: 25 local_sgd {} }");
      return 0.0;
    }
    const auto epoch = options_.learning_rate.epoch_of_drop(message_.at_drop());
    if (!epoch) {
      issues_.add(
          path_ + ".at_drop",
          fmt::format("the learning rate has no drop {}: at_drop counts the drops of a multistep or step schedule "
                      "from 1; write at_epoch instead",
                      message_.at_drop()));
    }
    return epoch.value_or(0.0);
  }

  std::vector<int> read_learners() {
    if (!message_.has_learners()) return {};
    const std::string path = path_ + ".learners";
    const int learners = message_.learners();
    const std::vector<int> before = previous_learners();
    if (options_.tuned || !options_.schedule.empty()) {
      issues_.add(path,
                  "learners of a switch need a fixed number before it; write learners { per_device { fixed: ... } }");
    }
    const int most = before.empty() ? learners : std::ranges::min(before);
    if (learners < 1 || learners > most) {
      issues_.add(path, fmt::format("the learners of a switch must be in [1, {}], the number before it, not {}", most,
                                    learners));
    }
    return std::vector<int>(options_.devices.size(), learners);
  }

  void check_order(const SynchronizationSwitch& read) {
    const std::string path = path_ + (message_.has_at_drop() ? ".at_drop" : ".at_epoch");
    if (issues_.has(path) || issues_.has(path_)) return;
    const double before = options_.switches.empty() ? 0.0 : options_.switches.back().at_epoch;
    const int epochs = options_.training.max_epochs;
    if (!(read.at_epoch > before)) {
      issues_.add(path,
                  options_.switches.empty()
                      ? fmt::format("a switch stands after the start: at_epoch must be above 0, not {}", read.at_epoch)
                      : fmt::format("switches must ascend: epoch {} does not follow {}{}", read.at_epoch, before,
                                    is_warm_start(options_.switches.back())
                                        ? ", where the warm start of async_sgd ends (warm_start_epochs)"
                                        : ""));
    } else if (read.at_epoch >= epochs) {
      issues_.add(path, fmt::format("the run ends after {} (training.max_epochs): the switch at epoch {} would have no "
                                    "effect",
                                    counted(epochs, "epoch"), read.at_epoch));
    }
  }

  const v1::Switch& message_;
  std::string path_;
  JobOptions& options_;
  dataflow::FieldIssues& issues_;
};

// Puts s_sgd before an asynchronous first scheme, as the job's first switch.
void add_warm_start(const v1::AsyncSgd& kind, JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = options.synchronization_path + ".warm_start_epochs";
  const double epochs = kind.warm_start_epochs();
  const double most = options.training.max_epochs;
  if (std::string problem = out_of_range("warm_start_epochs", epochs, below(0.0, most)); !problem.empty()) {
    issues.add(path, fmt::format("{}: it must leave epochs of training.max_epochs to async_sgd", problem));
    return;
  }
  if (epochs == 0.0 || options.synchronization.coupling(2) != sma::Coupling::kServer) return;
  options.switches.push_back({.at_epoch = epochs,
                              .to = options.synchronization,
                              .learners_per_device = {},
                              .with_learners = options.learning_rate.with_learners,
                              .path = options.synchronization_path});
  options.synchronization = sma::defaults_of(Scheme::kSSgd);
}

void check_asynchronous(const JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = path_of_server(options);
  if (path.empty() || !options.tuned) return;
  issues.add(path,
             "async_sgd and learners.per_device.auto exclude each other: the auto-tuner measures rounds, and "
             "async_sgd has none; set learners { per_device { fixed: ... } }, or choose another scheme");
}

bool rises(const scheduler::LearningRateSchedule& schedule) {
  return schedule.at(0.0, 1) < 0.5F * static_cast<float>(schedule.base);
}

}  // namespace

void fill_synchronization(v1::Synchronization& synchronization, int max_epochs) {
  if (synchronization.has_async_sgd() && !synchronization.async_sgd().has_warm_start_epochs()) {
    synchronization.mutable_async_sgd()->set_warm_start_epochs(max_epochs > 1 ? kWarmStartEpochs : 0.0);
  }
  if (!visit_kind(synchronization, [](auto& kind, const char*) { fill(kind); })) {
    fill(*synchronization.mutable_sma());
  }
  if (!synchronization.has_report_loss_gap()) synchronization.set_report_loss_gap(false);
  if (!synchronization.has_compare_rounds()) synchronization.set_compare_rounds(JobOptions().compare_rounds);
  for (v1::Switch& each : *synchronization.mutable_switch_()) {
    visit_kind(each, [](auto& kind, const char*) { fill(kind); });
  }
}

bool steps_by_push(const v1::Synchronization& synchronization) {
  if (!synchronization.has_async_sgd()) return false;
  v1::AsyncSgd kind = synchronization.async_sgd();
  fill(kind);
  return !(kind.has_staleness() && kind.staleness() == 0 && kind.push_every() == 1);
}

void read_synchronization(const v1::Synchronization& synchronization, JobOptions& options,
                          dataflow::FieldIssues& issues) {
  options.reports_loss_gap = synchronization.report_loss_gap();
  options.compare_rounds = synchronization.compare_rounds();
  issues.add("synchronization.compare_rounds",
             out_of_range("compare_rounds", options.compare_rounds, {0, kMostCompareRounds}));
  const scheduler::MovingAverageOptions& average = options.training.moving_average;
  if (options.reports_loss_gap && (average.epochs > 0.0 || average.mean_from_epoch)) {
    issues.add("synchronization.report_loss_gap",
               "report_loss_gap compares the learners with the model as it is, and this job evaluates an average over "
               "time; set training.moving_average_epochs: 0 and remove training.mean_from_epoch");
  }
  if (options.reports_loss_gap && options.data.kind == DataOptions::Kind::kRatings) {
    issues.add("synchronization.report_loss_gap",
               "report_loss_gap is for classifiers, and ratings are numbers; remove it");
  }
  const std::string path = "synchronization";
  const PlacedOptions kind = read_kind(synchronization, path, issues);
  options.synchronization = kind.options;
  options.synchronization_path = kind.path;
  if (synchronization.has_async_sgd()) add_warm_start(synchronization.async_sgd(), options, issues);
  for (int i = 0; i < synchronization.switch__size(); ++i) {
    SwitchReader(synchronization.switch_(i), fmt::format("{}.switch[{}]", path, i), options, issues).read();
  }
  check_asynchronous(options, issues);
}

std::vector<std::string> synchronization_warnings(const JobOptions& options) {
  std::vector<std::string> warnings;
  bool is_first = true;
  for (const SchemePhase& phase : scheme_phases(options, most_learners(options))) {
    // The learning rate rises at the start of the run, not at a switch.
    const bool warms_up = std::exchange(is_first, false) && rises(options.learning_rate);
    const std::string text = sma::warning(phase.scheme, phase.learners, engine::momentum_of(options.optimizer.rule),
                                          phase.scaling == scheduler::RateScaling::kLinear, warms_up);
    if (!text.empty()) warnings.push_back(fmt::format("{}: {}", phase.path, text));
    if (phase.scheme.coupling(phase.learners) == sma::Coupling::kServer &&
        phase.scaling != scheduler::RateScaling::kKeep) {
      warnings.push_back(fmt::format(
          "{}: each push is a whole step, so {} learners take as many steps as one, and with_learners multiplies the "
          "learning rate of each besides; set with_learners: KEEP if the loss rises",
          phase.path, phase.learners));
    }
  }
  if (options.reports_loss_gap && most_learners(options) == 1) {
    warnings.emplace_back(
        "synchronization.report_loss_gap: the job has one learner, and nothing is averaged: averaging_loss_gap has no "
        "meaning; remove report_loss_gap, or set learners { per_device { fixed: 2 } } or more");
  }
  return warnings;
}

std::vector<Options> schemes_of(const JobOptions& options) {
  std::vector<Options> schemes = {options.synchronization};
  for (const SynchronizationSwitch& each : options.switches) schemes.push_back(each.to);
  return schemes;
}

int longest_stride(const JobOptions& options) { return sma::longest_stride(schemes_of(options)); }

bool sums_gradients(const JobOptions& options) {
  return std::ranges::any_of(schemes_of(options), [](const Options& scheme) {
    return scheme.scheme == Scheme::kAsyncSgd && scheme.period > 1;
  });
}

std::string path_of_server(const JobOptions& options) {
  if (options.synchronization.scheme == Scheme::kAsyncSgd) return options.synchronization_path;
  const auto found = std::ranges::find_if(
      options.switches, [](const SynchronizationSwitch& each) { return each.to.scheme == Scheme::kAsyncSgd; });
  return found == options.switches.end() ? "" : found->path;
}

bool measures_gradients(const JobOptions& options) {
  return options.tuned && options.tuned->objective == TuningObjective::kGoodput;
}

std::int64_t gradient_part_bytes(const JobOptions& options) {
  std::int64_t bytes = 0;
  for (const Options& scheme : schemes_of(options)) bytes = std::max(bytes, scheme.bucket_bytes);
  return bytes;
}

}  // namespace arbalest::jobs
