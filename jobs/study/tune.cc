#include "jobs/study/tune.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>

#include "engine/error.h"
#include "jobs/messages/failure.h"
#include "jobs/messages/text.h"
#include "jobs/run/learners/failed_counts.h"
#include "jobs/run/learners/tuned_changes.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// A job that trains as fast but never diverges: a study may train for any time, with numbers of learners that the
// learning rate is not meant for. Goodput needs real steps.
JobOptions without_steps(JobOptions job) {
  if (job.tuned->objective == TuningObjective::kThroughput) job.learning_rate.base = 0.0;
  return job;
}

int total(const std::vector<int>& learners) { return std::accumulate(learners.begin(), learners.end(), 0); }

class Study {
 public:
  Study(const JobOptions& job, const RunContext& context, const std::function<void(const std::string&)>& tell)
      : job_(without_steps(job)),
        tell_(tell),
        stop_signal_(context.stop_signal),
        session_(open_session(job_, context.data_root, context.device_options)),
        present_(job_.learners_per_device) {
    for (std::size_t w = job.warnings.size(); w < job_.warnings.size(); ++w) tell_(job_.warnings[w]);
  }

  TuneResult search() {
    TunedChanges changes(job_, *session_, first_guess(job_));
    if (!changes.warning().empty()) tell_(changes.warning());
    const Clock::time_point start = Clock::now();
    TuneResult result{.job = job_.name,
                      .devices = {},
                      .batch_size = job_.training.batch_size,
                      .precision = to_string(job_.training.precision),
                      .chosen = {},
                      .reason = {},
                      .objective = job_.tuned->objective,
                      .synchronization = std::string(sma::name_of(job_.synchronization.scheme)),
                      .points = {},
                      .sweep = {}};
    for (const engine::DeviceSpec& device : job_.devices) result.devices.push_back(device.name);
    std::map<std::vector<int>, std::int64_t> bytes;
    while (!changes.is_settled()) {
      result.signal = signal();
      if (result.signal != 0) {
        result.is_complete = false;
        return result;
      }
      if (const auto change = changes.due(session_->scheduler().batches())) {
        tell_(change->reason);
        result.reason = change->reason;
        if (change->to != present_) resize(change->to);
      }
      bytes[present_] = session_->learner_bytes();
      const auto [progress, seconds] = round();
      changes.observe(progress, seconds);
    }
    result.chosen = present_;
    efficiency_ = changes.efficiency();
    result.noise_scale = efficiency_.noise_scale();
    const autotuner::Tuner& tuner = changes.tuner().tuner();
    for (const autotuner::Point& measured : tuner.curve().points()) {
      TunePoint& point = result.points.emplace_back(point_at(changes.measured_with(measured)));
      point.images_per_second = measured.rate;
      point.error = measured.error;
      point.learner_bytes = bytes.at(point.learners);
      weigh(point);
    }
    const autotuner::Point* chosen = tuner.curve().find(tuner.present().learners);
    if (chosen != nullptr) result.images_per_second = chosen->rate;
    result.probes = tuner.probes();
    result.seconds = seconds_between(start, Clock::now());
    collect_sweep(changes);
    return result;
  }

  // Measures in three turns, so that disturbances of the machine affect all numbers. Numbers that do not fit are left
  // out of the later turns, and of the sweep if they never fit. Returns nothing if it is stopped.
  std::vector<TunePoint> sweep() {
    constexpr int kTurns = 3;
    std::map<std::vector<int>, std::vector<double>> rates;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (TunePoint& point : sweep_) {
        if (signal() != 0) return {};
        if (lost_.contain(point.learners) || !switch_to(point.learners)) continue;
        point.learner_bytes = session_->learner_bytes();
        measure(point.learners, rates[point.learners]);
      }
      if (signal() != 0) return {};
      tell_(fmt::format("sweep: turn {} of {}", turn + 1, kTurns));
    }
    std::erase_if(sweep_, [&](const TunePoint& point) { return !rates.contains(point.learners); });
    for (TunePoint& point : sweep_) {
      autotuner::NoiseEstimate noise;
      const std::vector<double>& of = rates.at(point.learners);
      point.images_per_second = autotuner::median(of);
      point.error = autotuner::median_error(noise.with(of), static_cast<int>(of.size()));
      weigh(point);
    }
    return sweep_;
  }

  // The signal that asks the study to stop, or 0.
  int signal() const { return stop_signal_ == nullptr ? 0 : stop_signal_->load(); }

 private:
  static TunePoint point_at(const DeviceConfigurations& devices) {
    TunePoint point{.learners = learners_of(devices), .threads = {}};
    for (const autotuner::Configuration& device : devices) point.threads.push_back(device.threads);
    return point;
  }

  void weigh(TunePoint& point) const {
    if (efficiency_.is_known()) point.efficiency = efficiency_.of(total(point.learners));
  }

  void collect_sweep(const TunedChanges& changes) {
    for (const DeviceConfigurations& devices : changes.equal_counts()) sweep_.push_back(point_at(devices));
    const TunePoint chosen = point_at(changes.present());
    if (std::ranges::find(sweep_, chosen.learners, &TunePoint::learners) == sweep_.end()) sweep_.push_back(chosen);
    std::ranges::stable_sort(sweep_, {}, [](const TunePoint& point) { return total(point.learners); });
  }

  // Returns false if there is not enough memory.
  bool switch_to(const std::vector<int>& learners) {
    try {
      session_->prepare(learners);
    } catch (const std::exception& error) {
      if (!is_shortage(error)) throw;
      lost_.add(present_, learners);
      tell_(fmt::format("sweep: {} left out, as they do not fit: {}", counted(total(learners), "learner"),
                        as_error(error).what()));
      return false;
    }
    resize(learners);
    return true;
  }

  void measure(const std::vector<int>& learners, std::vector<double>& rates) {
    constexpr int kWindows = 12;
    autotuner::WindowMeter meter({});
    meter.restart(total(learners));
    for (int windows = 0; windows < kWindows && signal() == 0;) {
      const auto [progress, seconds] = round();
      if (const auto rate = meter.add(progress.tasks, progress.examples, seconds)) {
        rates.push_back(*rate);
        ++windows;
      }
    }
  }

  struct Round {
    scheduler::Progress progress;
    double seconds = 0.0;
  };

  Round round() {
    Round result{session_->scheduler().advance(session_->training_ring(), 1)};
    const Clock::time_point now = Clock::now();
    result.seconds = seconds_between(last_, now);
    last_ = now;
    return result;
  }

  void resize(const std::vector<int>& counts) {
    session_->scheduler().drain();
    session_->resize(counts);
    present_ = counts;
    last_ = Clock::now();
  }

  JobOptions job_;
  const std::function<void(const std::string&)>& tell_;
  const std::atomic<int>* stop_signal_;
  std::unique_ptr<Session> session_;
  std::vector<int> present_;          // by device
  std::vector<TunePoint> sweep_;      // numbers that it will measure
  FailedCounts lost_;                 // lost in the sweep
  autotuner::Efficiency efficiency_;  // at the end of the search; unknown if throughput decides
  Clock::time_point last_ = Clock::now();
};

}  // namespace

std::optional<double> regret_of(const TuneResult& result) {
  const auto chosen = std::ranges::find(result.sweep, result.chosen, &TunePoint::learners);
  if (chosen == result.sweep.end()) return std::nullopt;
  const auto best = std::ranges::max_element(result.sweep, {}, &TunePoint::goodput);
  return 1.0 - chosen->goodput() / best->goodput();
}

TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& tell) {
  ARBALEST_CHECK(job.tuned.has_value());
  Study study(job, context, tell);
  TuneResult result = study.search();
  if (result.chosen.empty()) return result;
  result.is_complete = !options.sweep;
  if (options.found) options.found(result);
  if (!options.sweep) return result;
  result.sweep = study.sweep();
  if (result.sweep.empty()) result.signal = study.signal();  // a signal after the sweep has stopped nothing
  result.is_complete = result.signal == 0;
  result.regret = regret_of(result);
  return result;
}

}  // namespace arbalest::jobs
