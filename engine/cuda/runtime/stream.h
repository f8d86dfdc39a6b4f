// A CUDA stream with the library handles and the workspace of its learner. The calling host thread enqueues work. The
// device reports its progress in a counter in mapped host memory, which the host reads without a driver call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/buffer.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handle.h"
#include "engine/cuda/runtime/library_handles.h"
#include "engine/cuda/runtime/team_stream.h"
#include "engine/stream.h"

namespace arbalest::engine {
class StreamObserver;
}

namespace arbalest::engine::cuda {

// The stream and its resources, which a task needs to enqueue kernels. Only the stream's own tasks use the handles.
struct StreamContext {
  TeamStream stream = {};
  cudnnHandle_t cudnn = nullptr;    // null on streams without libraries
  cublasHandle_t cublas = nullptr;  // null on streams without libraries; its workspace is fixed, so that results repeat
  float* partials = nullptr;        // [kPartials] device memory of replica 0 for sums by block; free between tasks
  unsigned* arrivals = nullptr;     // [kMaxBlocks] device memory of replica 0, zeros between kernels (last_block.h)
};

inline constexpr int kPartials = 6144;

class CudaTaskGraph final : public TaskGraph {
 public:
  struct Entry {
    const char* label = "";
    std::function<void(const StreamContext&)> run;
    bool calls_libraries = false;
  };

  ReplicaMemory replicas;  // for which each entry is enqueued
  std::vector<Entry> entries;
  Handle<cudaGraphExec_t, cudaGraphExecDestroy> executable;  // none: the entries are enqueued one by one
};

class CudaStream final : public Stream {
 public:
  struct Options {
    std::string name;
    StreamRole role = StreamRole::kLearner;
    int ordinal = 0;     // device ordinal
    int replicas = 1;    // of a team, at most
    bool graphs = true;  // false: recordings are enqueued task by task, and errors name the operator
    StreamObserver* observer = nullptr;
  };

  // Device memory of a stream, in bytes. With libraries this includes their workspace and room for the recordings, but
  // not their handles.
  static std::size_t bytes(bool libraries, int replicas = 1);

  // `gate`: the device's; must outlive the stream.
  CudaStream(Options options, CaptureGate& gate);
  // Waits for all enqueued work.
  ~CudaStream() override;

  const std::string& name() const noexcept override { return options_.name; }

  StreamRole role() const noexcept override { return options_.role; }

  void begin_task(std::uint64_t number, WorkPhase phase) override;
  void wait(const Event& event, const char* label) override;
  void copy(void* to, const void* from, std::size_t bytes, const char* label) override;
  void fill_zero(void* to, std::size_t bytes, const char* label) override;
  void enqueue(const FlatTask& task, const char* label) override;
  void launch(const TaskGraph& graph, const char* label) override;
  Event record() override;
  Event deliver(void* to, const void* from, std::size_t bytes, const char* label) override;
  void fetch(void* to, const void* from, std::size_t bytes, const char* label) override;
  void drain() noexcept override;
  void begin_recording(const ReplicaMemory& replicas) override;
  std::unique_ptr<TaskGraph> end_recording() override;

  // Throws if the GPU has failed. Does not wait.
  void check() const;

  // Runs `function`, which enqueues work on its StreamContext; while recording, only keeps it. Exceptions of `function`
  // are rethrown with the stream and the label as prefix.
  template <typename Function>
  void submit(const char* label, Function function) {
    submit(TaskKind::kOperator, label, std::move(function), /*calls_libraries=*/false);
  }
  // As submit, for a function that calls cuDNN or cuBLAS. A library's first call may load code or allocate, which
  // breaks a capture, so end_recording() runs `function` once before it captures. A library may return success for a
  // failed launch, so run() also checks the runtime's last error.
  template <typename Function>
  void submit_to_libraries(const char* label, Function function) {
    submit(TaskKind::kOperator, label, std::move(function), /*calls_libraries=*/true);
  }

 private:
  // Number of events, which are reused. Waiting for an older record waits for a later point of the stream.
  static constexpr std::uint64_t kEvents = 64;
  using EventHandle = Handle<cudaEvent_t, cudaEventDestroy>;

  bool has_passed(std::uint64_t position) const override;
  void synchronize(std::uint64_t position) override;
  cudaEvent_t event_at(std::uint64_t position) const { return events_[position % kEvents].get(); }

  template <typename Function>
  void submit(TaskKind kind, const char* label, Function function, bool calls_libraries) {
    if (recording_ != nullptr) {
      recording_->entries.push_back({label, std::move(function), calls_libraries});
    } else {
      run(kind, label, function, calls_libraries);
    }
  }
  template <typename Function>
  void run(TaskKind kind, const char* label, const Function& function, bool calls_libraries = false);
  void run(const CudaTaskGraph::Entry& entry) {
    run(TaskKind::kOperator, entry.label, entry.run, entry.calls_libraries);
  }
  void capture(CudaTaskGraph& recorded);
  // Runs each entry for which choose(entry), for the replicas of the recording.
  template <typename Choose>
  void run_entries(const CudaTaskGraph& recorded, const Choose& choose);
  Event next_event();
  void before(const TaskInfo& task);
  void after(const TaskInfo& task);
  [[noreturn]] void rethrow_with_place(const char* label) const;

  const Options options_;
  WorkPhase phase_ = WorkPhase::kTraining;
  std::string place_;  // stream name and mini-batch, for traces and errors
  Handle<cudaStream_t, cudaStreamDestroy> stream_;
  CaptureGate& gate_;
  std::unique_ptr<LibraryHandles> libraries_;
  Buffer cublas_workspace_;
  Buffer partials_;
  Buffer arrivals_;
  Buffer passed_;  // mapped host memory: uint64_t, the last position that the device has passed
  StreamContext context_;
  std::array<EventHandle, kEvents> events_;
  std::uint64_t position_ = 0;  // position of the last record
  bool dirty_ = false;          // whether work was enqueued since the last record
  std::unique_ptr<CudaTaskGraph> recording_;
};

// Operators of this backend run on CudaStreams only.
inline CudaStream& as_cuda(Stream& stream) { return static_cast<CudaStream&>(stream); }

template <typename Function>
void CudaStream::run(TaskKind kind, const char* label, const Function& function, bool calls_libraries) {
  const TaskInfo task{label, kind, phase_};
  before(task);
  try {
    ARBALEST_CUDA(cudaSetDevice(options_.ordinal));
    function(static_cast<const StreamContext&>(context_));
    if (calls_libraries) ARBALEST_CUDA(cudaGetLastError());
  } catch (...) {
    after(task);
    rethrow_with_place(label);
  }
  after(task);
}

}  // namespace arbalest::engine::cuda
