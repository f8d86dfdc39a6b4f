#include "study/tune.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>

#include "autotuner/comparison.h"
#include "engine/base/error.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "study/tune_answer.h"
#include "train/learners/failed_counts.h"
#include "train/learners/processor_use.h"
#include "train/learners/tuned_changes.h"
#include "train/session/session.h"

namespace arbalest::jobs {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// A job that trains as fast but never diverges: a study may train for any time, with numbers of learners that the
// learning rate is not meant for. Goodput needs real steps.
JobOptions without_steps(JobOptions job) {
  job.tunes_team = false;
  if (job.tuned->objective == TuningObjective::kThroughput) job.learning_rate.base = 0.0;
  return job;
}

int total(const std::vector<int>& learners) { return std::accumulate(learners.begin(), learners.end(), 0); }

// How long a study waits for a quiet machine: 100 windows for each number of learners.
constexpr autotuner::QuietOptions kPatience{.most_lost = 0.05, .most_repeats = 100};

TunePoint point_at(const DeviceConfigurations& devices, std::span<const engine::DeviceSpec> specs) {
  TunePoint point{.learners = learners_of(devices), .threads = {}, .cores = 0};
  for (std::size_t d = 0; d < devices.size(); ++d) {
    point.threads.push_back(devices[d].threads);
    point.cores += std::min(devices[d].learners * devices[d].threads, engine::core_count(specs[d]));
  }
  return point;
}

TuneResult begin_result(const JobOptions& job) {
  TuneResult result{.job = job.name,
                    .devices = {},
                    .batch_size = job.training.batch_size,
                    .precision = to_string(job.training.precision),
                    .chosen = {},
                    .reason = {},
                    .objective = job.tuned->objective,
                    .synchronization = std::string(sma::name_of(job.synchronization.scheme)),
                    .points = {},
                    .sweep = {},
                    .fewer_threads = {},
                    .machine = {}};
  for (const engine::DeviceSpec& device : job.devices) result.devices.push_back(device.name);
  return result;
}

void take_over(const autotuner::Measured& measured, TunePoint& point) {
  point.images_per_second = measured.rate;
  point.error = measured.error;
  point.windows = measured.windows;
  if (measured.per_processor_second <= 0.0) return;
  point.lost = measured.processor.lost_share();
  point.images_per_processor_second = measured.per_processor_second;
  point.processor_error = measured.processor_error;
}

// One number of learners that is compared with others.
struct Candidate {
  TunePoint point;
  int most_threads = 0;  // of a learner; 0: as many as the cores give
  std::vector<autotuner::Window> known{};
};

class Study {
 public:
  Study(const JobOptions& job, const RunContext& context, const std::function<void(const std::string&)>& note)
      : job_(without_steps(job)),
        note_(note),
        stop_signal_(context.stop_signal),
        session_(open_session(job_, context.data_root, context.device_options)),
        present_(job_.learners_per_device),
        clock_(make_processor_clock(job_)),
        result_(begin_result(job_)) {
    for (std::size_t w = job.warnings.size(); w < job_.warnings.size(); ++w) note_(job_.warnings[w]);
  }

  // Returns false if a signal has stopped it.
  bool search() {
    TunedChanges changes(job_, *session_, first_guess(job_), kPatience);
    changes.measure_with(clock_.get());
    if (!changes.warning().empty()) note_(changes.warning());
    const Clock::time_point start = Clock::now();
    while (!changes.is_settled()) {
      if (signal() != 0) return false;
      if (const auto change = changes.due(session_->scheduler().batches())) {
        note_(change->reason);
        if (change->to != present_) resize(change->to);
      }
      bytes_[present_] = session_->learner_bytes();
      const auto [progress, seconds] = round();
      changes.observe(progress, seconds);
    }
    take_points(changes);
    result_.seconds = seconds_between(start, Clock::now());
    return true;
  }

  // Compares `every` number, or the best ones of the search, with one learner. Returns false if a signal has stopped
  // it; the result is then as before.
  bool compare(bool every) {
    const Clock::time_point start = Clock::now();
    std::vector<Candidate> candidates = every ? all_candidates() : best_candidates();
    const std::size_t chosen_from = candidates.size();
    add_baselines(candidates);
    std::vector<std::vector<autotuner::Window>> known;
    for (const Candidate& candidate : candidates) known.push_back(candidate.known);
    autotuner::Comparison comparison({}, std::move(known));
    if (!measure(comparison, candidates, every ? "sweep" : "comparison")) return false;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto measured = comparison.measured(i);
      if (!measured) continue;
      take_over(*measured, candidates[i].point);
      weigh(candidates[i].point);
      keep(candidates[i], i < chosen_from && every);
    }
    take_machine(comparison.quiet(), search_was_quiet_ || every);
    answer(result_);
    if (!every) result_.seconds += seconds_between(start, Clock::now());
    return true;
  }

  TuneResult& result() { return result_; }
  // The signal that asks the study to stop, or 0.
  int signal() const { return stop_signal_ == nullptr ? 0 : stop_signal_->load(); }

 private:
  void weigh(TunePoint& point) const {
    if (efficiency_.is_known()) point.efficiency = efficiency_.of(total(point.learners));
  }

  std::vector<int> one_each() const { return std::vector<int>(job_.devices.size(), 1); }

  void take_points(const TunedChanges& changes) {
    efficiency_ = changes.efficiency();
    result_.noise_scale = efficiency_.noise_scale();
    result_.probes = changes.tuner().tuner().probes();
    search_was_quiet_ = changes.tuner().is_quiet();
    for (const autotuner::Point& measured : changes.tuner().tuner().curve().points()) {
      TunePoint& point = result_.points.emplace_back(point_at(changes.measured_with(measured), job_.devices));
      const autotuner::Comparison of_search({}, {measured.measurements});
      if (const auto windows = of_search.measured(0)) take_over(*windows, point);
      point.images_per_second = measured.rate;
      point.error = measured.error;
      point.learner_bytes = bytes_.at(point.learners);
      weigh(point);
      if (point.learners == one_each()) result_.baseline = point;
      if (search_was_quiet_) known_[point.learners] = measured.measurements;
    }
    take_machine(changes.tuner().tuner().quiet(), search_was_quiet_);
    for (const DeviceConfigurations& devices : changes.equal_counts()) {
      numbers_.push_back(point_at(devices, job_.devices));
    }
    chosen_by_search_ = point_at(changes.present(), job_.devices);
    answer(result_);
  }

  void take_machine(const autotuner::QuietWindows& quiet, bool others_were_quiet) {
    processor_.add(quiet.all());
    result_.machine.is_known = processor_.is_known();
    result_.machine.was_quiet = quiet.is_quiet() && others_were_quiet;
    result_.machine.lost = processor_.lost_share();
    result_.machine.disturbed_windows += quiet.left_out();
  }

  Candidate candidate_of(const TunePoint& point) const {
    const auto known = known_.find(point.learners);
    return {.point = point, .known = known == known_.end() ? std::vector<autotuner::Window>() : known->second};
  }

  std::vector<Candidate> all_candidates() const {
    std::vector<Candidate> all;
    for (const TunePoint& point : numbers_) all.push_back(candidate_of(point));
    if (std::ranges::find(numbers_, chosen_by_search_.learners, &TunePoint::learners) == numbers_.end()) {
      all.push_back(candidate_of(chosen_by_search_));
    }
    std::ranges::stable_sort(all, {}, [](const Candidate& candidate) { return total(candidate.point.learners); });
    return all;
  }

  // Those within 10 % of the best, and the search's choice.
  std::vector<Candidate> best_candidates() const {
    constexpr double kNear = 0.9;
    double best = 0.0;
    for (const TunePoint& point : result_.points) best = std::max(best, point.goodput());
    std::vector<Candidate> near;
    for (const TunePoint& point : result_.points) {
      const bool is_near = point.goodput() * (1.0 + 3.0 * point.error) >= kNear * best;
      if (is_near || point.learners == chosen_by_search_.learners) near.push_back(candidate_of(point));
    }
    return near;
  }

  // Adds one learner on each device unless it is there, and the same with a half, a quarter ... of the threads.
  void add_baselines(std::vector<Candidate>& candidates) const {
    DeviceConfigurations one;
    int most = 1;
    for (const engine::DeviceSpec& device : job_.devices) {
      one.push_back({1, engine::core_count(device)});
      most = std::max(most, one.back().threads);
    }
    const auto is_one = [&](const Candidate& candidate) { return candidate.point.learners == one_each(); };
    if (std::ranges::none_of(candidates, is_one)) candidates.push_back(candidate_of(point_at(one, job_.devices)));
    for (int threads = most / 2; threads >= 1; threads /= 2) {
      DeviceConfigurations fewer = one;
      for (autotuner::Configuration& device : fewer) device.threads = std::min(device.threads, threads);
      candidates.push_back({.point = point_at(fewer, job_.devices), .most_threads = threads});
    }
  }

  // Puts a measured candidate where it belongs in the result.
  void keep(const Candidate& candidate, bool is_of_sweep) {
    const TunePoint& point = candidate.point;
    if (candidate.most_threads > 0) {
      result_.fewer_threads.insert(result_.fewer_threads.begin(), point);
      return;
    }
    if (point.learners == one_each()) result_.baseline = point;
    if (is_of_sweep) result_.sweep.push_back(point);
    const auto same = std::ranges::find(result_.points, point.learners, &TunePoint::learners);
    const bool may_be_chosen = std::ranges::find(numbers_, point.learners, &TunePoint::learners) != numbers_.end();
    if (same != result_.points.end()) {
      *same = point;
    } else if (!is_of_sweep && may_be_chosen) {
      result_.points.push_back(point);
      std::ranges::stable_sort(result_.points, {}, [](const TunePoint& of) { return total(of.learners); });
    }
  }

  // Returns false if a signal has stopped it.
  bool measure(autotuner::Comparison& comparison, std::vector<Candidate>& candidates, const char* what) {
    int turn = comparison.turn();
    while (const std::optional<std::size_t> next = comparison.next()) {
      if (comparison.turn() != turn) {
        note_(fmt::format("{}: turn {} is over, rates are known to {:.1f} %", what, turn,
                          100.0 * comparison.largest_error()));
        turn = comparison.turn();
      }
      Candidate& candidate = candidates[*next];
      if (!switch_to(candidate, what)) {
        comparison.drop(*next);
        continue;
      }
      candidate.point.learner_bytes = session_->learner_bytes();
      autotuner::WindowMeter meter({});
      meter.restart(total(candidate.point.learners));
      for (bool is_over = false; !is_over;) {
        if (signal() != 0) return false;
        const auto window = next_window(meter);
        is_over = window && comparison.add(*window);
      }
    }
    return true;
  }

  std::optional<autotuner::Window> next_window(autotuner::WindowMeter& meter) {
    const auto [progress, seconds] = round();
    autotuner::ProcessorUse processor;
    if (clock_ && meter.completes(progress.tasks, progress.examples, seconds)) processor = take_use(*clock_);
    return meter.add(progress.tasks, progress.examples, seconds, processor);
  }

  // Returns false if there is not enough memory.
  bool switch_to(const Candidate& candidate, const char* what) {
    const std::vector<int>& learners = candidate.point.learners;
    if (candidate.most_threads == 0 && lost_.contain(learners)) return false;
    session_->limit_threads(candidate.most_threads);
    try {
      session_->prepare(learners);
    } catch (const std::exception& error) {
      if (!is_shortage(error)) throw;
      if (candidate.most_threads == 0) lost_.add(present_, learners);
      note_(fmt::format("{}: {} left out, as they do not fit: {}", what, counted(total(learners), "learner"),
                        as_error(error).what()));
      return false;
    }
    resize(learners);
    return true;
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
    if (clock_) clock_->restart();
  }

  JobOptions job_;
  const std::function<void(const std::string&)>& note_;
  const std::atomic<int>* stop_signal_;
  std::unique_ptr<Session> session_;
  std::vector<int> present_;                             // by device
  std::unique_ptr<engine::host::ProcessorClock> clock_;  // null on GPUs
  TuneResult result_;
  std::map<std::vector<int>, std::int64_t> bytes_;                    // by learners
  std::map<std::vector<int>, std::vector<autotuner::Window>> known_;  // of a quiet search, by learners
  std::vector<TunePoint> numbers_;                                    // that may be chosen
  TunePoint chosen_by_search_;
  bool search_was_quiet_ = true;
  autotuner::ProcessorUse processor_;
  FailedCounts lost_;                 // lost after the search
  autotuner::Efficiency efficiency_;  // at the end of the search; unknown if throughput decides
  Clock::time_point last_ = Clock::now();
};

}  // namespace

TuneResult tune(const JobOptions& job, const RunContext& context, const TuneOptions& options,
                const std::function<void(const std::string&)>& note) {
  ARBALEST_CHECK(job.tuned.has_value());
  Study study(job, context, note);
  TuneResult& result = study.result();
  if (!study.search() || (!options.sweep && !study.compare(false))) {
    result.signal = study.signal();
    result.is_complete = false;
    result.chosen.clear();
    return result;
  }
  result.is_complete = !options.sweep;
  if (options.found) options.found(result);
  if (!options.sweep) return result;
  result.is_complete = study.compare(true);
  if (!result.is_complete) result.signal = study.signal();  // a signal after the sweep has stopped nothing
  return result;
}

}  // namespace arbalest::jobs
