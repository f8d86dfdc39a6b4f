// The all-reduce that a job uses between GPUs: NCCL's, with one GPU for each rank.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/device.h"
#include "engine/process/world.h"
#include "engine/stream.h"

namespace arbalest::bench {

class GpuSum {
 public:
  // Takes the GPU whose number is the rank's on its host. A call of World's operations.
  explicit GpuSum(engine::process::World& world);

  // Why there is nothing to measure: a rank has no GPU of its own, or the build no NCCL; "" otherwise. All ranks have
  // the same answer. The functions below need "".
  const std::string& problem() const noexcept { return problem_; }

  // Gives each rank a vector of as many zeros.
  void prepare(std::size_t elements);
  // Sums the vectors of all ranks, and waits for it.
  void run();

  float* values() const noexcept { return values_.as<float>(); }
  engine::Stream& stream() const noexcept { return *stream_; }

 private:
  std::string problem_;
  std::vector<std::unique_ptr<engine::Device>> devices_;  // one
  std::unique_ptr<engine::Stream> stream_;
  engine::Buffer values_;
  std::size_t elements_ = 0;
  std::unique_ptr<engine::Collective> collective_;  // goes before the stream
};

}  // namespace arbalest::bench
