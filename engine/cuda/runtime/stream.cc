#include "engine/cuda/runtime/stream.h"

#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <iterator>
#include <thread>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/cuda/runtime/grid.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/cuda/runtime/report_position.h"
#include "engine/cuda/runtime/send_words.h"
#include "engine/stream_observer.h"

namespace arbalest::engine::cuda {

namespace {

// Whether a pass can be recorded for a team. The others read or write many replicas, or the central model.
template <typename Task>
constexpr bool kTakesReplicas =
    std::is_same_v<Task, WeightUpdate> || std::is_same_v<Task, GradientClip> || std::is_same_v<Task, GatherExamples> ||
    std::is_same_v<Task, RoundWeights> || std::is_same_v<Task, TensorSum>;

// cuBLAS' default size on Hopper. With a user's workspace its results repeat (cuBLAS, "Results Reproducibility").
constexpr std::size_t kCublasWorkspace = std::size_t{32} << 20U;
constexpr std::size_t kTaskName = 40;                      // characters of ", mini-batch N"
constexpr std::size_t kGraphRoom = std::size_t{2} << 20U;  // the driver's allocation unit, for recordings
constexpr int kPolls = 2000;                               // reads of the mapped counter before the host thread sleeps
constexpr auto kNap = std::chrono::microseconds(20);
constexpr int kNapsBetweenQuestions = 16;  // sleeps between two checks that the device still runs
constexpr std::size_t kPartialsBytes = kPartials * sizeof(float);      // of a replica
constexpr std::size_t kArrivalsBytes = kMaxBlocks * sizeof(unsigned);  // likewise
constexpr const char* kEarlierWork = "this or earlier work";

}  // namespace

std::size_t CudaStream::bytes(bool libraries, int replicas) {
  return static_cast<std::size_t>(replicas) * (kPartialsBytes + kArrivalsBytes) +
         (libraries ? kCublasWorkspace + kGraphRoom : 0);
}

CudaStream::CudaStream(Options options, CaptureGate& gate)
    : options_(std::move(options)), place_(options_.name), gate_(gate) {
  place_.reserve(options_.name.size() + kTaskName);
  ARBALEST_CUDA(cudaSetDevice(options_.ordinal));
  int least = 0;
  int greatest = 0;
  ARBALEST_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const bool runs_operators = engine::runs_operators(options_.role);
  // Learners wait for the streams without operators.
  ARBALEST_CUDA(cudaStreamCreateWithPriority(stream_.put(), cudaStreamNonBlocking, runs_operators ? least : greatest));
  for (EventHandle& event : events_) {
    // Events serve streams only: the host reads the mapped counter, so no event needs to interrupt it.
    ARBALEST_CUDA(cudaEventCreateWithFlags(event.put(), cudaEventDisableTiming));
  }
  const auto replicas = static_cast<std::size_t>(options_.replicas);
  partials_ = allocate_device(replicas * kPartialsBytes);
  arrivals_ = allocate_device(replicas * kArrivalsBytes);
  passed_ = allocate_mapped(sizeof(std::uint64_t));
  context_.stream.handle = stream_.get();
  context_.partials = partials_.as<float>();
  context_.arrivals = arrivals_.as<unsigned>();
  if (!runs_operators) return;
  cublas_workspace_ = allocate_workspace(kCublasWorkspace);
  libraries_ = std::make_unique<LibraryHandles>(options_.ordinal, stream_.get(), gate_);
  ARBALEST_CUDA(cublasSetWorkspace(libraries_->cublas(), cublas_workspace_.data(), kCublasWorkspace));
  // Without this flag, partial sums of bfloat16 products may be rounded before they are added.
  constexpr int kSumsInFloat32 = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  ARBALEST_CUDA(cublasSetMathMode(libraries_->cublas(), static_cast<cublasMath_t>(kSumsInFloat32)));
  context_.cudnn = libraries_->cudnn();
  context_.cublas = libraries_->cublas();
}

CudaStream::~CudaStream() { drain(); }

void CudaStream::begin_task(std::uint64_t number, WorkPhase phase) {
  phase_ = phase;
  place_.resize(options_.name.size());
  fmt::format_to(std::back_inserter(place_), ", mini-batch {}", number);
}

void CudaStream::wait(const Event& event, const char* label) {
  ARBALEST_CHECK(recording_ == nullptr);
  if (event.stream() == nullptr || event.stream() == this || event.position() == 0) return;
  if (options_.observer != nullptr && options_.observer->drops_wait(*this, label)) return;
  const auto* other = static_cast<const CudaStream*>(event.stream());
  ARBALEST_CHECK(event.position() <= other->position_);  // only a recorded point can be waited for
  run(TaskKind::kWait, label, [&](const StreamContext& context) {
    ARBALEST_CUDA(cudaStreamWaitEvent(context.stream.handle, other->event_at(event.position()), cudaEventWaitDefault));
  });
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes, const char* label) {
  const auto copy = [=](const StreamContext& context) {
    for_each_replica(context.stream, [&](const auto& place) {
      ARBALEST_CUDA(cudaMemcpyAsync(place(to), place(from), bytes, cudaMemcpyDefault, context.stream.handle));
    });
  };
  submit(TaskKind::kCopy, label, copy, /*calls_libraries=*/false);
}

void CudaStream::fill_zero(void* to, std::size_t bytes, const char* label) {
  const auto fill = [=](const StreamContext& context) {
    for_each_replica(context.stream, [&](const auto& place) {
      ARBALEST_CUDA(cudaMemsetAsync(place(to), 0, bytes, context.stream.handle));
    });
  };
  submit(TaskKind::kCopy, label, fill, /*calls_libraries=*/false);
}

void CudaStream::enqueue(const FlatTask& task, const char* label) {
  std::visit(
      [&]<typename Task>(const Task& flat) {
        ARBALEST_CHECK(kTakesReplicas<Task> || recording_ == nullptr || recording_->replicas.count == 1);
        const auto pass = [flat](const StreamContext& context) { run_flat(flat, context); };
        submit(TaskKind::kPass, label, pass, /*calls_libraries=*/false);
      },
      task);
}

void CudaStream::launch(const TaskGraph& graph, const char* label) {
  ARBALEST_CHECK(recording_ == nullptr);
  const auto& recorded = static_cast<const CudaTaskGraph&>(graph);
  if (recorded.executable.get() != nullptr) {
    run(TaskKind::kGraph, label, [&](const StreamContext& context) {
      ARBALEST_CUDA(cudaGraphLaunch(recorded.executable.get(), context.stream.handle));
    });
    return;
  }
  const TaskInfo task{label, TaskKind::kGraph, phase_};
  before(task);
  run_entries(recorded, [](const CudaTaskGraph::Entry&) { return true; });
  after(task);
}

Event CudaStream::record() {
  ARBALEST_CHECK(recording_ == nullptr);
  if (!dirty_) return {this, position_};
  try {
    ARBALEST_CUDA(cudaSetDevice(options_.ordinal));
    report_position(passed_.as<std::uint64_t>(), position_ + 1, {}, stream_.get());
  } catch (...) {
    rethrow_with_place(kEarlierWork);
  }
  return next_event();
}

// A separate copy would cost the host another call, and the stream a detour to a copy engine.
Event CudaStream::deliver(void* to, const void* from, std::size_t bytes, const char* label) {
  ARBALEST_CHECK(recording_ == nullptr);
  const Words words{static_cast<std::uint32_t*>(to), static_cast<const std::uint32_t*>(from),
                    static_cast<std::uint32_t>(bytes / sizeof(std::uint32_t))};
  ARBALEST_CHECK(words.count * sizeof(std::uint32_t) == bytes);
  run(TaskKind::kResult, label, [&](const StreamContext& context) {
    report_position(passed_.as<std::uint64_t>(), position_ + 1, words, context.stream.handle);
  });
  return next_event();
}

void CudaStream::fetch(void* to, const void* from, std::size_t bytes, const char* label) {
  ARBALEST_CHECK(recording_ == nullptr);
  run(TaskKind::kCopy, label,
      [&](const StreamContext& context) { send_words(to, from, bytes, context.stream.handle); });
}

// Call after report_position of the next position.
Event CudaStream::next_event() {
  try {
    ARBALEST_CUDA(cudaEventRecord(event_at(position_ + 1), stream_.get()));
  } catch (...) {
    rethrow_with_place(kEarlierWork);
  }
  dirty_ = false;
  return {this, ++position_};
}

void CudaStream::drain() noexcept {
  static_cast<void>(cudaSetDevice(options_.ordinal));  // the current device may have failed
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
}

void CudaStream::begin_recording(const ReplicaMemory& replicas) {
  ARBALEST_CHECK(recording_ == nullptr && replicas.count <= options_.replicas);
  recording_ = std::make_unique<CudaTaskGraph>();
  recording_->replicas = replicas;
  recording_->replicas.regions.push_back({partials_.data(), kPartialsBytes});
  recording_->replicas.regions.push_back({arrivals_.data(), kArrivalsBytes});
}

template <typename Choose>
void CudaStream::run_entries(const CudaTaskGraph& recorded, const Choose& choose) {
  context_.stream.replicas = &recorded.replicas;
  try {
    for (const CudaTaskGraph::Entry& entry : recorded.entries) {
      if (choose(entry)) run(entry);
    }
  } catch (...) {
    context_.stream.replicas = nullptr;
    throw;
  }
  context_.stream.replicas = nullptr;
}

std::unique_ptr<TaskGraph> CudaStream::end_recording() {
  ARBALEST_CHECK(recording_ != nullptr);
  const std::unique_ptr<CudaTaskGraph> recorded = std::move(recording_);
  if (!options_.graphs) return std::make_unique<CudaTaskGraph>(std::move(*recorded));
  ARBALEST_CUDA(cudaSetDevice(options_.ordinal));
  run_entries(*recorded, [](const CudaTaskGraph::Entry& entry) { return entry.calls_libraries; });
  record().synchronize();
  capture(*recorded);
  return std::make_unique<CudaTaskGraph>(std::move(*recorded));
}

void CudaStream::capture(CudaTaskGraph& recorded) {
  const auto undisturbed = gate_.enter_capture();
  ARBALEST_CUDA(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
  Handle<cudaGraph_t, cudaGraphDestroy> graph;
  try {
    run_entries(recorded, [](const CudaTaskGraph::Entry&) { return true; });
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream_.get(), graph.put()));  // the exception already reports the cause
    throw;
  }
  ARBALEST_CUDA(cudaStreamEndCapture(stream_.get(), graph.put()));
  if (cudaGraphInstantiate(recorded.executable.put(), graph.get(), 0) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    trim_pool(options_.ordinal);  // the pool may hold memory of freed learners that the graph needs
    ARBALEST_CUDA(cudaGraphInstantiate(recorded.executable.put(), graph.get(), 0));
  }
  ARBALEST_CUDA(cudaGraphUpload(recorded.executable.get(), stream_.get()));
}

bool CudaStream::has_passed(std::uint64_t position) const {
  const auto* passed = static_cast<const volatile std::uint64_t*>(passed_.data());
  if (*passed >= position) return true;
  // A failed device no longer counts, so ask the driver, too.
  static_cast<void>(cudaSetDevice(options_.ordinal));  // another, failed device may be current
  const cudaError_t state = cudaEventQuery(event_at(position));
  if (state == cudaErrorNotReady) static_cast<void>(cudaGetLastError());  // not an error, but the runtime stores it
  return state != cudaErrorNotReady;
}

void CudaStream::check() const {
  try {
    ARBALEST_CUDA(cudaSetDevice(options_.ordinal));
    const cudaError_t state = cudaEventQuery(event_at(position_));
    if (state == cudaErrorNotReady) return static_cast<void>(cudaGetLastError());
    ARBALEST_CUDA(state);
  } catch (...) {
    rethrow_with_place(kEarlierWork);
  }
}

// A sleep costs a few microseconds of the host's time. A blocking event would cost the device an interrupt at every
// record, even if nothing waits for it.
void CudaStream::synchronize(std::uint64_t position) {
  const auto* passed = static_cast<const volatile std::uint64_t*>(passed_.data());
  for (int i = 0; i < kPolls; ++i) {
    if (*passed >= position) return;
    __builtin_ia32_pause();
  }
  for (int naps = 0; *passed < position; ++naps) {
    // A failed device no longer counts, so check() must find out.
    if (naps % kNapsBetweenQuestions == 0) {
      check();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

void CudaStream::before(const TaskInfo& task) {
  if (options_.observer != nullptr) options_.observer->before_task(*this, task);
  nvtxRangePushA(place_.c_str());
  nvtxRangePushA(task.label);
  dirty_ = true;
}

void CudaStream::after(const TaskInfo& task) {
  nvtxRangePop();
  nvtxRangePop();
  if (options_.observer != nullptr) options_.observer->after_task(*this, task);
}

void CudaStream::rethrow_with_place(const char* label) const {
  try {
    throw;
  } catch (const Error& error) {
    const char* hint = error.kind() == ErrorKind::kDevice && options_.graphs
                           ? "; run again with --no-graph to see which operator it was"
                           : "";
    throw Error(error.kind(), fmt::format("{}: {}: {}{}", place_, label, error.what(), hint));
  }
}

}  // namespace arbalest::engine::cuda
