#include "bench/all_reduce/gpu_sum.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/backends/cuda_devices.h"
#include "engine/backends/devices.h"
#include "engine/process/all_gather.h"

namespace arbalest::bench {

namespace {

// Why this rank cannot take part; "": it can.
std::string problem_here(const engine::process::World& world) {
  const engine::CudaMachine machine = engine::find_cuda_devices();
  if (!machine.problem.empty()) return machine.problem;
  if (static_cast<std::size_t>(world.local_rank()) >= machine.devices.size()) {
    return fmt::format("{} processes share {} GPUs", world.local_size(), machine.devices.size());
  }
  const std::vector<engine::LibraryVersion> versions = engine::cuda_library_versions();
  const bool has_nccl = std::ranges::any_of(versions, [](const auto& library) { return library.name == "NCCL"; });
  return has_nccl ? "" : "this build has no NCCL";
}

}  // namespace

GpuSum::GpuSum(engine::process::World& world) {
  const std::vector<std::string> problems = engine::process::all_gather(world, problem_here(world));
  for (std::size_t rank = 0; rank < problems.size() && problem_.empty(); ++rank) {
    if (!problems[rank].empty()) {
      problem_ = fmt::format("NCCL sums over one GPU for each process, but {} has none: {}",
                             world.place(static_cast<int>(rank)), problems[rank]);
    }
  }
  if (!problem_.empty()) return;
  devices_.push_back(engine::open_device(engine::parse_device(fmt::format("cuda:{}", world.local_rank()))));
  stream_ = devices_.front()->create_stream({.name = "sums"});
  collective_ = engine::make_collective(devices_, world);
}

void GpuSum::prepare(std::size_t elements) {
  values_ = devices_.front()->allocate(elements * sizeof(float));
  elements_ = elements;
}

void GpuSum::run() {
  const engine::CollectivePart part{.stream = stream_.get(), .values = values()};
  collective_->all_reduce_sum({&part, 1}, elements_, "sum over GPUs");
  collective_->wait(stream_->record());
}

}  // namespace arbalest::bench
