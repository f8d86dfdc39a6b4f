#include "jobs/report/trace.h"

#include <algorithm>
#include <numeric>

#include <pthread.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/stream.h"
#include "jobs/export/atomic_file.h"
#include "jobs/report/json.h"

namespace arbalest::jobs {

namespace {

constexpr double kNanoseconds = 1e9;
constexpr const char* kLearner = " learner ";

TraceTime nanoseconds(double seconds) { return static_cast<TraceTime>(kNanoseconds * seconds); }
double seconds(TraceTime time) { return static_cast<double>(time) / kNanoseconds; }

bool is_on_gpu(std::string_view stream) { return stream.starts_with("cuda"); }

// Identifies the calling thread, which must live as long as the trace.
const void* this_thread() { return reinterpret_cast<const void*>(pthread_self()); }

const char* category_of(std::string_view track, std::string_view span) {
  if (span.starts_with("wait")) return "wait";
  if (track.find("input") != std::string_view::npos) return "input";
  if (track.ends_with("averaging")) return "averaging";
  return span == "evaluate" || span == "statistics" ? "evaluation" : "training";
}

// Writes one span in Chrome's format, whose times are microseconds.
std::string span_text(std::string_view name, const char* category, int track, TraceTime begin, TraceTime end) {
  return fmt::format("{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}},\n",
                     nlohmann::json(name).dump(), category, track, static_cast<double>(begin) / 1e3,
                     static_cast<double>(end - begin) / 1e3);
}

std::string name_text(const char* what, int track, std::string_view name) {
  return fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":{}}}}},\n", what, track,
                     nlohmann::json(name).dump());
}

std::string shares_text(const TraceShares& shares, TraceTime at) {
  const nlohmann::ordered_json all = to_json(shares);
  nlohmann::ordered_json known;
  for (const auto& [name, share] : all.items()) {
    if (!share.is_null()) known[name] = share;
  }
  return fmt::format("{{\"ph\":\"C\",\"name\":\"shares\",\"pid\":1,\"ts\":{:.3f},\"args\":{}}},\n",
                     static_cast<double>(at) / 1e3, known.dump());
}

}  // namespace

nlohmann::ordered_json to_json(const TraceShares& shares) {
  return {{"device_busy", null_unless_set(shares.busy)},
          {"averaging_wait", null_unless_set(shares.averaging_wait)},
          {"input_wait", shares.input_wait}};
}

Trace::Trace(std::filesystem::path path, std::size_t spans_per_track)
    : path_(std::move(path)), tracks_(spans_per_track) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, error))) {
    engine::fail(engine::ErrorKind::kUsage, "--trace {}: it is there already; choose another name", path_.string());
  }
  const std::filesystem::path directory = path_.has_parent_path() ? path_.parent_path() : ".";
  if (!std::filesystem::is_directory(directory, error)) {
    engine::fail(engine::ErrorKind::kUsage, "--trace {}: there is no directory '{}'", path_.string(),
                 directory.string());
  }
}

TraceTime Trace::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
}

void Trace::before_task(const engine::Stream& stream, const char* /*label*/) {
  if (TraceTrack* track = tracks_.find(&stream, stream.name())) track->begin(now());
}

void Trace::after_task(const engine::Stream& stream, const char* label) {
  if (TraceTrack* track = tracks_.find(&stream, stream.name())) track->end(label, now());
}

void Trace::Input::before_fill() {
  if (TraceTrack* track = trace_.tracks_.find(this_thread(), name_)) track->begin(trace_.now());
}

void Trace::Input::after_fill() {
  if (TraceTrack* track = trace_.tracks_.find(this_thread(), name_)) track->end("fill", trace_.now());
}

void Trace::Input::before_wait() {
  if (TraceTrack* track = trace_.tracks_.find(this_thread(), wait_name_)) track->begin(trace_.now());
}

void Trace::Input::after_wait() {
  if (TraceTrack* track = trace_.tracks_.find(this_thread(), wait_name_)) track->end("wait for input", trace_.now());
}

void Trace::on_prepare() { last_ = now(); }

void Trace::on_start(const RunStart& start) {
  on_gpu_ = std::ranges::any_of(start.devices, is_on_gpu);
  const TraceTime at = now();
  phases_.push_back({"preparation", last_, at});
  last_ = at;
  learners_before_ = sums_of(kLearner);
  input_before_ = sums_of(training_input_.wait_name());
}

TraceSums Trace::sums_of(std::string_view part_of_name) const {
  TraceSums sums;
  tracks_.for_each([&](const TraceTrack& track) {
    // "evaluation input wait" contains "input wait", but is another track.
    const bool is_whole = part_of_name == training_input_.wait_name();
    if (is_whole ? track.name() != part_of_name : track.name().find(part_of_name) == std::string::npos) return;
    sums.busy += track.sums().busy;
    sums.waiting += track.sums().waiting;
  });
  return sums;
}

// Learners that come or go within an epoch count for as long as they exist.
void Trace::on_resize(const ResizeRow& row) {
  const TraceTime at = now();
  learner_time_ += std::reduce(row.from.begin(), row.from.end()) * (at - std::max(last_, resized_));
  resized_ = at;
}

void Trace::measure(const EpochRow& row, TraceTime begin, TraceTime end) {
  const TraceSums learners = sums_of(kLearner);
  const TraceSums input = sums_of(training_input_.wait_name());
  const int count = std::reduce(row.learners_per_device.begin(), row.learners_per_device.end());
  const double whole = seconds(learner_time_ + count * (end - std::min(end, std::max(begin, resized_))));
  learner_time_ = 0;
  shares_ = TraceShares{};
  if (whole > 0.0) {
    if (!on_gpu_) {
      shares_->busy = seconds(learners.busy - learners_before_.busy) / whole;
      shares_->averaging_wait = seconds(learners.waiting - learners_before_.waiting) / whole;
    }
    shares_->input_wait = seconds(input.waiting - input_before_.waiting) / row.training_seconds;
  }
  learners_before_ = learners;
  input_before_ = input;
}

// Called right after the evaluation.
void Trace::on_epoch(const EpochRow& row) {
  const TraceTime at = now();
  const TraceTime evaluation = std::max(last_, at - nanoseconds(row.evaluation_seconds));
  const TraceTime training = std::max(last_, evaluation - nanoseconds(row.training_seconds));
  phases_.push_back({fmt::format("epoch {}", row.epoch), training, at});
  phases_.push_back({"training", training, evaluation});
  phases_.push_back({"evaluation", evaluation, at});
  last_ = at;
  measure(row, training, evaluation);
  epochs_.push_back({training, *shares_});
}

void Trace::on_finish(const RunSummary& /*summary*/) {
  phases_.push_back({"end of the run", last_, now()});
  write_file(path_, to_json());
}

std::string Trace::epoch_text() const {
  if (!shares_) return "";
  const std::string input = fmt::format("input wait {:.1f} %", 100.0 * shares_->input_wait);
  if (!shares_->busy) return input;
  return fmt::format("device busy {:.1f} %, averaging wait {:.1f} %, {}", 100.0 * *shares_->busy,
                     100.0 * shares_->averaging_wait.value_or(0.0), input);
}

std::uint64_t Trace::dropped() const {
  std::uint64_t dropped = tracks_.refused();
  tracks_.for_each([&](const TraceTrack& track) { dropped += track.dropped(); });
  return dropped;
}

std::string Trace::to_json() const {
  std::vector<const TraceTrack*> tracks;
  tracks_.for_each([&](const TraceTrack& track) { tracks.push_back(&track); });
  std::ranges::stable_sort(tracks, {}, &TraceTrack::name);
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped_spans\":{},\"spans_are\":\"{}\"}},\"traceEvents\":[\n",
      dropped(), on_gpu_ ? "where the host enqueues tasks" : "where tasks run");
  constexpr int kRun = 0;
  for (const Phase& phase : phases_) text += span_text(phase.name, "run", kRun, phase.begin, phase.end);
  for (const Epoch& epoch : epochs_) text += shares_text(epoch.shares, epoch.begin);
  int id = kRun;
  for (const TraceTrack* track : tracks) {
    text += name_text("thread_name", ++id, track->name());
    for (const TraceSpan& span : track->spans()) {
      text += span_text(span.name, category_of(track->name(), span.name), id, span.begin, span.end);
    }
  }
  text += name_text("thread_name", kRun, "run");
  text += name_text("process_name", kRun, "arbalest train");
  text.resize(text.size() - 2);  // removes the last comma
  return text + "\n]}\n";
}

}  // namespace arbalest::jobs
