// Work of a stream, recorded once with fixed addresses and replayed: a list of prepared primitives on the CPU, a CUDA
// graph on a GPU. Values that change between replays are read from StepParameters.
#pragma once

namespace arbalest::engine {

class TaskGraph {
 public:
  virtual ~TaskGraph() = default;
};

}  // namespace arbalest::engine
