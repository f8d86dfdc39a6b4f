// Asks cuDNN about a convolution on a GPU that is absent.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/cudnn/convolution.h"
#include "tests/cudnn/library.h"

namespace arbalest::tests::cudnn {

// An engine of cuDNN that repeats its results, computes with what the precision promises, and whose plan was built for
// the device.
struct Engine {
  std::int64_t number = 0;  // cuDNN's own
  int rank = 0;             // place in cuDNN's list, which is sorted by expected time; 0 is the fastest
  bool tensor_cores = false;
  std::int64_t workspace_bytes = 0;
};

struct Answer {
  int candidates = 0;            // in cuDNN's list
  int without_cores = 0;         // of them: repeatable and exact enough, without tensor cores
  int with_cores = 0;            // the same, with tensor cores
  std::optional<Engine> engine;  // the first suitable one with at most the allowed workspace
};

// Engines that are compiled at run time are left out: their plans cannot be built without a GPU's driver.
//   float_gradient: the gradient of bfloat16 weights is written as float32
// Throws CallFailed where cuDNN refuses the question.
Answer ask(const Library& library, const Descriptor& device, const Convolution& convolution, Pass pass,
           std::int64_t allowed_workspace_bytes, bool float_gradient = false);

}  // namespace arbalest::tests::cudnn
