// Kinds of streams and tasks. Traces and benchmarks read these kinds instead of names.
#pragma once

namespace arbalest::engine {

enum class StreamRole {
  kLearner,          // trains and evaluates a replica
  kInference,        // runs a model that is not trained
  kSynchronization,  // updates the central model
  kTransfer          // copies data to and from a device
};

// Streams that run operators get the cores (CPU) or the library handles (CUDA) that operators need. The other streams
// may run on any core of a CPU device, without lending it, and have high priority on a GPU.
constexpr bool runs_operators(StreamRole role) {
  return role == StreamRole::kLearner || role == StreamRole::kInference;
}

enum class TaskKind {
  kWait,      // for an event of another stream
  kCopy,      // copies or clears memory
  kPass,      // a flat task (engine/stream.h)
  kOperator,  // one pass of an operator
  kGraph,     // a recorded TaskGraph
  kResult     // delivers results to the host: the last task of a mini-batch
};

// The phase of a run to which a stream's tasks belong (Stream::begin_task).
enum class WorkPhase {
  kTraining,
  kEvaluation,
  kStatistics  // measures running statistics of batch normalization
};

struct TaskInfo {
  const char* label = "";  // a string literal, or outlives the stream
  TaskKind kind = TaskKind::kOperator;
  WorkPhase phase = WorkPhase::kTraining;
};

}  // namespace arbalest::engine
