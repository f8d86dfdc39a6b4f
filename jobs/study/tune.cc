#include "jobs/study/tune.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "engine/error.h"
#include "jobs/run/learner_changes.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

class Study {
 public:
  Study(const JobOptions& job, const RunContext& context, const std::function<void(const std::string&)>& tell)
      : job_(job),
        tell_(tell),
        session_(open_session(job_, context.data_root, Session::Purpose::kTraining, context.device_options)) {
    for (std::size_t w = job.warnings.size(); w < job_.warnings.size(); ++w) tell_(job_.warnings[w]);
  }

  TuneResult search() {
    TunedChanges changes(job_, *session_, first_guess(job_));
    const Clock::time_point start = Clock::now();
    TuneResult result{.job = job_.name,
                      .devices = {},
                      .batch_size = job_.training.batch_size,
                      .precision = to_string(job_.training.precision),
                      .chosen = job_.learners_per_device,
                      .reason = {},
                      .points = {},
                      .sweep = {}};
    for (const engine::DeviceSpec& device : job_.devices) result.devices.push_back(device.name);
    std::map<int, std::int64_t> bytes;
    while (!changes.is_settled()) {
      if (const auto change = changes.due(session_->scheduler().batches())) {
        tell_(change->reason);
        result.reason = change->reason;
        if (change->to != result.chosen) resize(change->to);
        result.chosen = change->to;
      }
      bytes[result.chosen.front()] = session_->learner_bytes();
      const auto [progress, seconds] = round();
      changes.observe(progress, seconds);
    }
    const autotuner::Tuner& tuner = changes.tuner().tuner();
    for (const autotuner::Point& point : tuner.curve().points()) {
      const autotuner::Configuration& at = point.configuration;
      result.points.push_back({at.learners, at.threads, point.rate, point.error, bytes[at.learners]});
    }
    const autotuner::Point* chosen = tuner.curve().find(tuner.present().learners);
    if (chosen != nullptr) result.images_per_second = chosen->rate;
    result.probes = tuner.probes();
    result.seconds = seconds_between(start, Clock::now());
    space_ = changes.space();
    return result;
  }

  // Every number in turn, three times, so that what disturbs the machine disturbs all of them.
  std::vector<TunePoint> sweep() {
    constexpr int kTurns = 3;
    constexpr int kWindows = 12;
    std::map<int, std::vector<double>> rates;
    std::map<int, std::int64_t> bytes;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (const autotuner::Configuration& at : space_) {
        const std::vector<int> counts(job_.devices.size(), at.learners);
        session_->prepare(counts);
        resize(counts);
        bytes[at.learners] = session_->learner_bytes();
        autotuner::WindowMeter meter({});
        meter.restart(at.learners * static_cast<int>(counts.size()));
        for (int windows = 0; windows < kWindows;) {
          const auto [progress, seconds] = round();
          if (const auto rate = meter.add(progress.tasks, progress.examples, seconds)) {
            rates[at.learners].push_back(*rate);
            ++windows;
          }
        }
      }
      tell_(fmt::format("sweep: turn {} of {}", turn + 1, kTurns));
    }
    std::vector<TunePoint> points;
    for (const autotuner::Configuration& at : space_) {
      autotuner::NoiseEstimate noise;
      const std::vector<double>& of = rates[at.learners];
      points.push_back({at.learners, at.threads, autotuner::median(of),
                        autotuner::median_error(noise.with(of), static_cast<int>(of.size())), bytes[at.learners]});
    }
    return points;
  }

 private:
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
    last_ = Clock::now();
  }

  JobOptions job_;
  const std::function<void(const std::string&)>& tell_;
  std::unique_ptr<Session> session_;
  std::vector<autotuner::Configuration> space_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace

TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& tell) {
  ARBALEST_CHECK(job.tuned.has_value());
  Study study(job, context, tell);
  TuneResult result = study.search();
  if (!options.sweep) return result;
  result.sweep = study.sweep();
  const auto rate = [](const TunePoint& point) { return point.images_per_second; };
  const auto best = std::ranges::max_element(result.sweep, {}, rate);
  const auto chosen = std::ranges::find(result.sweep, result.chosen.front(), &TunePoint::learners);
  ARBALEST_CHECK(chosen != result.sweep.end());
  result.regret = 1.0 - chosen->images_per_second / best->images_per_second;
  return result;
}

}  // namespace arbalest::jobs
