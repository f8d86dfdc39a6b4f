// Which kernels compute an operator, where a device has several that may: plain data, as devices take and give it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace arbalest::engine {

enum class KernelSelection {
  kFixed,  // a rule chooses, so that the kernels never depend on measured times
  kTimed   // GPU: candidates are timed while operators are prepared, and the fastest is taken
};

struct KernelCandidate {
  std::string name;  // "own tiled product"
  // A layer is timed forward and backward for all replicas, one of cuDNN's passes for one. None: it was not timed.
  std::optional<double> microseconds = {};
};

struct KernelChoice {
  std::string question;                          // the operator: extents, precision, mode, replicas
  std::string answer;                            // name of the kernels that compute it
  std::vector<KernelCandidate> candidates = {};  // in the order in which they were tried; empty: nothing was timed
  std::string note = {};                         // what failed before; "": nothing
};

// "dense 32x800, 500 units ...: library (own tiled product 41.2 us, library 30.1 us); <note>"
std::string to_text(const KernelChoice& choice);

}  // namespace arbalest::engine
