// A CPU stream: a queue and one worker thread that owns a share of its device's cores. A stream on the caller has no
// worker: each enqueuing function does its work before it returns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "engine/cpu/runtime/core_lending.h"
#include "engine/cpu/runtime/task.h"
#include "engine/stream.h"

namespace arbalest::engine {
class StreamObserver;
}

namespace arbalest::engine::cpu {

class CpuTaskGraph final : public TaskGraph {
 public:
  struct Entry {
    std::unique_ptr<Task> task;
    const char* label = "";
  };

  std::vector<Entry> entries;
};

class CpuStream final : public Stream {
 public:
  struct Options {
    std::string name;
    StreamRole role = StreamRole::kLearner;
    int threads = 1;
    std::vector<int> pinned_cores = {};  // empty: unpinned
    StreamObserver* observer = nullptr;
    CoreLending* lending = nullptr;  // null: no core lending
    bool lends = true;               // whether the stream lends its core while it waits
    bool on_caller = false;          // whether work runs on the enqueuing thread, which is not pinned
  };

  explicit CpuStream(Options options);
  // Returns when all enqueued work has ended.
  ~CpuStream() override;

  const std::string& name() const noexcept override { return options_.name; }

  StreamRole role() const noexcept override { return options_.role; }

  void begin_task(std::uint64_t number, WorkPhase phase) override {
    batch_ = number;
    phase_ = phase;
  }
  void wait(const Event& event, const char* label) override;
  void copy(void* to, const void* from, std::size_t bytes, const char* label) override;
  void fill_zero(void* to, std::size_t bytes, const char* label) override;
  void enqueue(const FlatTask& task, const char* label) override;
  void launch(const TaskGraph& graph, const char* label) override;
  Event record() override;
  Event deliver(void* to, const void* from, std::size_t bytes, const char* label) override;
  void report(Completions& to, std::uint64_t value) override;
  void drain() noexcept override;
  void begin_recording(const ReplicaMemory& replicas) override;
  std::unique_ptr<TaskGraph> end_recording() override;

  // Enqueues a task, or keeps it while recording. Allocates, so it is for recordings and set-up, not for steps.
  void submit(std::unique_ptr<Task> task, const char* label);

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  struct FillZero {
    void* to;
    std::size_t bytes;
  };
  struct Report {
    Completions* to;
    std::uint64_t value;
  };
  using Work =
      std::variant<std::monostate, Event, Copy, FillZero, Report, WeightUpdate, GradientClip, ReplicaDifference,
                   CentralUpdate, LocalAveraging, VectorMean, VectorVariance, MovingAverage, GatherExamples,
                   RoundWeights, TensorSum, VectorHash, const CpuTaskGraph*, std::unique_ptr<Task>>;
  struct Command {
    Work work;
    TaskInfo task = {};
    std::optional<std::uint64_t> batch = {};
  };
  static constexpr std::size_t kQueueCapacity = 1024;

  bool has_passed(std::uint64_t position) const override;
  void synchronize(std::uint64_t position) override;
  void push(Work work, TaskKind kind, const char* label);
  void work_loop();
  // Runs a command, or abandons it after an earlier error. Returns the command's own error, or null.
  std::exception_ptr run(Command& command);
  // Marks the work up to `position` as passed.
  void pass(std::uint64_t position, std::exception_ptr error);
  std::string place_of(const Command& command) const;
  std::exception_ptr settle() noexcept;  // the worker's thread settings; returns an error, or null
  void execute(Work& work, const char* label);
  void abandon(Work& work) noexcept;
  // Waits without throwing. Returns the error of the work before `position`, or null.
  std::exception_ptr wait_passed(std::uint64_t position);
  // As wait_passed, for this stream's worker, which may lend its core while it waits.
  std::exception_ptr wait_for(CpuStream& other, std::uint64_t position);

  const Options options_;
  CoreLending::Seat* const seat_;  // null without lending
  // Used by the enqueuing thread only.
  std::unique_ptr<CpuTaskGraph> recording_;
  std::optional<std::uint64_t> batch_;
  WorkPhase phase_ = WorkPhase::kTraining;

  mutable std::mutex mutex_;
  std::condition_variable pushed_;              // the worker waits here
  std::condition_variable passed_;              // waiters for events and for room in the queue wait here
  std::vector<Command> queue_;                  // ring of kQueueCapacity; command p is at p % kQueueCapacity
  std::uint64_t pushed_count_ = 0;              // guarded by mutex_
  std::atomic<std::uint64_t> passed_count_{0};  // written under mutex_
  int waiters_ = 0;                             // threads that wait on passed_
  bool stopping_ = false;
  std::exception_ptr error_;          // first error of the stream
  std::uint64_t error_position_ = 0;  // number of commands up to and including the failed one

  bool failed_ = false;  // used by the thread that runs the commands only
  std::thread worker_;   // none if work runs on the caller
};

}  // namespace arbalest::engine::cpu
