// Queries cuDNN about a convolution on a GPU that the machine does not have.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/cudnn/convolution.h"
#include "tests/cudnn/library.h"

namespace arbalest::tests::cudnn {

// A repeatable engine of cuDNN that computes in the required precision. Its plan could be built for the device.
struct Engine {
  std::int64_t number = 0;  // cuDNN's number of the engine
  int rank = 0;             // index in cuDNN's list, which is sorted by expected time; 0 is the fastest
  bool tensor_cores = false;
  std::int64_t workspace_bytes = 0;
};

struct Answer {
  int candidates = 0;            // length of cuDNN's list
  int without_cores = 0;         // candidates that are repeatable and exact enough, without tensor cores
  int with_cores = 0;            // candidates that are repeatable and exact enough, with tensor cores
  std::optional<Engine> engine;  // the first suitable one with at most the allowed workspace
};

// Skips engines that are compiled at run time, because their plans cannot be built without a GPU's driver.
//   float_gradient: the gradient of bfloat16 weights is written as float32
// Throws CallFailed if cuDNN rejects the query.
Answer ask(const Library& library, const Descriptor& device, const Convolution& convolution, Pass pass,
           std::int64_t allowed_workspace_bytes, bool float_gradient = false);

}  // namespace arbalest::tests::cudnn
