// Records when a run does what, for ui.perfetto.dev and chrome://tracing (the trace event format of Chrome): the tasks
// of each learner and of averaging, the filling of mini-batches, waiting, epochs and their evaluations. It also
// measures, for each epoch, how busy the devices were.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "dataflow/input/batches/input_observer.h"
#include "engine/stream_observer.h"
#include "report/trace_tracks.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

// Fractions of the time of an epoch's training, without its evaluation.
struct TraceShares {
  // Means over the learners' streams; none on a GPU.
  std::optional<double> busy;            // neither waiting nor idle
  std::optional<double> averaging_wait;  // waiting for averaging
  double input_wait = 0.0;               // the host thread that feeds the learners waits for a mini-batch
};

// "device_busy", "averaging_wait", "input_wait"
nlohmann::ordered_json to_json(const TraceShares& shares);

// On a CPU device a span shows when a task runs. On a GPU it shows when the host enqueues the task, and the fractions
// of busy and waiting time are unknown.
class Trace final : public engine::StreamObserver, public RunObserver {
 public:
  static constexpr std::size_t kSpansPerTrack = std::size_t{1} << 17U;  // 3 MB; minutes of a small model

  // Keeps the first `spans_per_track` spans of each stream or thread. The file is written when the run ends; a
  // run that fails writes none, so the same command can be repeated. Throws kUsage if the file exists or its directory
  // does not.
  explicit Trace(std::filesystem::path path, std::size_t spans_per_track = kSpansPerTrack);

  dataflow::InputObserver& training_input() { return training_input_; }
  dataflow::InputObserver& evaluation_input() { return evaluation_input_; }

  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override;
  void after_task(const engine::Stream& stream, const engine::TaskInfo& task) override;

  void on_prepare() override;
  void on_start(const RunStart& start) override;
  void on_progress(const RunProgress&) override {}
  void on_epoch(const EpochRow& row) override;
  void on_resize(const ResizeRow& row) override;
  void on_finish(const RunSummary& summary) override;

  // Fractions of the last epoch; none before the first.
  const std::optional<TraceShares>& shares() const noexcept { return shares_; }
  // "device busy 93.1 %, averaging wait 2.1 %, input wait 0.3 %"; "" before the first epoch.
  std::string epoch_text() const;
  // Number of spans that were not kept for lack of room.
  std::uint64_t dropped() const;

 private:
  class Input final : public dataflow::InputObserver {
   public:
    Input(Trace& trace, TrackKind wait_kind, std::string name)
        : trace_(trace), wait_kind_(wait_kind), name_(std::move(name)), wait_name_(name_ + " wait") {}
    void before_fill() override;
    void after_fill() override;
    void before_wait() override;
    void after_wait() override;

   private:
    // Null if there are too many tracks.
    TraceTrack* fills() const;
    TraceTrack* waits() const;

    Trace& trace_;
    const TrackKind wait_kind_;
    const std::string name_;
    const std::string wait_name_;
  };
  struct Phase {
    std::string name;
    TraceTime begin = 0;
    TraceTime end = 0;
  };
  struct Epoch {
    TraceTime begin = 0;  // begin of its training
    TraceShares shares;
  };

  TraceTime now() const;
  TraceTrack* track_of(const engine::Stream& stream);
  // Sums over all tracks of a kind.
  TraceSums sums_of(TrackKind kind) const;
  // begin, end: of the epoch's training.
  void measure(const EpochRow& row, TraceTime begin, TraceTime end);
  std::string to_json() const;

  const std::filesystem::path path_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  TraceTracks tracks_;
  Input training_input_{*this, TrackKind::kInputWait, "input"};
  Input evaluation_input_{*this, TrackKind::kEvaluationInputWait, "evaluation input"};
  std::vector<Phase> phases_;
  std::vector<Epoch> epochs_;
  TraceTime last_ = 0;  // end of the last phase
  TraceTime resized_ = 0;
  TraceTime learner_time_ = 0;  // of this epoch before the resize, summed over learners
  TraceSums learners_before_;
  TraceSums input_before_;
  std::optional<TraceShares> shares_;
  bool on_gpu_ = false;
};

}  // namespace arbalest::jobs
