#include "report/trace.h"

#include <algorithm>
#include <numeric>

#include <pthread.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/stream.h"
#include "report/json.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace {

constexpr double kNanoseconds = 1e9;

TraceTime nanoseconds(double seconds) { return static_cast<TraceTime>(kNanoseconds * seconds); }
double seconds(TraceTime time) { return static_cast<double>(time) / kNanoseconds; }

bool is_on_gpu(std::string_view stream) { return stream.starts_with("cuda"); }

// Identifies the calling thread, which must live as long as the trace.
const void* this_thread() { return reinterpret_cast<const void*>(pthread_self()); }

TrackKind kind_of(engine::StreamRole role) {
  switch (role) {
    case engine::StreamRole::kLearner:
    case engine::StreamRole::kInference: return TrackKind::kLearner;
    case engine::StreamRole::kSynchronization: return TrackKind::kAveraging;
    case engine::StreamRole::kTransfer: break;
  }
  return TrackKind::kInput;
}

SpanKind kind_of(const engine::TaskInfo& task, TrackKind track) {
  if (task.kind == engine::TaskKind::kWait) return SpanKind::kWait;
  if (track == TrackKind::kAveraging) return SpanKind::kAveraging;
  if (track == TrackKind::kInput) return SpanKind::kInput;
  return task.phase == engine::WorkPhase::kTraining ? SpanKind::kTraining : SpanKind::kEvaluation;
}

const char* to_string(SpanKind kind) {
  switch (kind) {
    case SpanKind::kTraining: return "training";
    case SpanKind::kEvaluation: return "evaluation";
    case SpanKind::kAveraging: return "averaging";
    case SpanKind::kInput: return "input";
    case SpanKind::kWait: break;
  }
  return "wait";
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
    engine::fail(
        engine::ErrorKind::kUsage,
        "--trace {}: it is there already; choose another name (a trace covers one process, so a resumed run needs a "
        "file of its own)",
        path_.string());
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

TraceTrack* Trace::track_of(const engine::Stream& stream) {
  return tracks_.find(&stream, kind_of(stream.role()), stream.name());
}

void Trace::before_task(const engine::Stream& stream, const engine::TaskInfo& /*task*/) {
  if (TraceTrack* track = track_of(stream)) track->begin(now());
}

void Trace::after_task(const engine::Stream& stream, const engine::TaskInfo& task) {
  TraceTrack* track = track_of(stream);
  if (track == nullptr) return;
  track->end(task.label, kind_of(task, track->kind()), task.phase != engine::WorkPhase::kTraining, now());
}

TraceTrack* Trace::Input::fills() const { return trace_.tracks_.find(this_thread(), TrackKind::kInput, name_); }
TraceTrack* Trace::Input::waits() const { return trace_.tracks_.find(this_thread(), wait_kind_, wait_name_); }

void Trace::Input::before_fill() {
  if (TraceTrack* track = fills()) track->begin(trace_.now());
}

void Trace::Input::after_fill() {
  if (TraceTrack* track = fills()) track->end("fill", SpanKind::kInput, /*in_evaluation=*/false, trace_.now());
}

void Trace::Input::before_wait() {
  if (TraceTrack* track = waits()) track->begin(trace_.now());
}

void Trace::Input::after_wait() {
  if (TraceTrack* track = waits()) track->end("wait for input", SpanKind::kWait, /*in_evaluation=*/false, trace_.now());
}

void Trace::on_prepare() { last_ = now(); }

void Trace::on_start(const RunStart& start) {
  on_gpu_ = std::ranges::any_of(start.devices, is_on_gpu);
  const TraceTime at = now();
  phases_.push_back({"preparation", last_, at});
  last_ = at;
  learners_before_ = sums_of(TrackKind::kLearner);
  input_before_ = sums_of(TrackKind::kInputWait);
}

TraceSums Trace::sums_of(TrackKind kind) const {
  TraceSums sums;
  tracks_.for_each([&](const TraceTrack& track) {
    if (track.kind() != kind) return;
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
  const TraceSums learners = sums_of(TrackKind::kLearner);
  const TraceSums input = sums_of(TrackKind::kInputWait);
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

void Trace::on_finish(const RunSummary& summary) {
  if (summary.status == RunStatus::kFailed) return;
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
      text += span_text(span.name, to_string(span.kind), id, span.begin, span.end);
    }
  }
  text += name_text("thread_name", kRun, "run");
  text += name_text("process_name", kRun, "arbalest train");
  text.resize(text.size() - 2);  // removes the last comma
  return text + "\n]}\n";
}

}  // namespace arbalest::jobs
