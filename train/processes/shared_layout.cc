#include "train/processes/shared_layout.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataflow/layout_description.h"
#include "engine/backends/cuda_devices.h"
#include "engine/backends/versions.h"
#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "engine/process/packing.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;

namespace {

// "avx2 fma, oneDNN 2.6.3"
std::string kernels_of(const engine::DeviceSpec& device) {
  std::string kernels = device.is_cuda() ? engine::find_cuda_device(device).name
                                         : fmt::format("{}", fmt::join(engine::instruction_sets_in_force(), " "));
  for (const engine::LibraryVersion& library : engine::library_versions()) {
    kernels += fmt::format(", {} {}", library.name, library.version);
  }
  return kernels;
}

}  // namespace

std::optional<dataflow::ParameterLayout> layout_of_all(World& world, const engine::Device& device,
                                                       const dataflow::ParameterLayout& own) {
  if (world.size() == 1) return std::nullopt;
  const std::vector<std::string> preferred = dataflow::describe_layout(own);
  std::string taken = engine::process::pack(preferred);
  if (world.agree(taken).empty()) return std::nullopt;
  const std::vector<double> sets =
      engine::process::all_gather(world, static_cast<double>(engine::instruction_sets_in_force().size()));
  world.broadcast(taken, static_cast<int>(std::ranges::min_element(sets) - sets.begin()));
  const std::vector<std::string> description = engine::process::unpack(taken);
  std::optional<dataflow::ParameterLayout> layout;
  together(world, [&] {
    if (description != preferred) layout = dataflow::layout_of(description, own, device);
  });
  return layout;
}

void require_same_layout(World& world, const dataflow::ParameterLayout& layout, engine::Precision precision) {
  if (world.size() == 1) return;
  std::vector<std::string> description = dataflow::describe_layout(layout);
  description.emplace_back(engine::to_string(precision));
  const std::vector<int> others = world.agree(engine::process::pack(description));
  if (others.empty()) return;
  throw SharedError(engine::ErrorKind::kDevice,
                    fmt::format("{} needs another memory layout of the parameters than rank 0; use hosts of one kind",
                                world.place(others.front())));
}

std::string warning_of_unlike_kernels(World& world, const engine::DeviceSpec& device) {
  if (world.size() == 1) return "";
  const std::vector<std::string> kernels = engine::process::all_gather(world, kernels_of(device));
  const auto other = std::ranges::find_if(kernels, [&](const std::string& of) { return of != kernels.front(); });
  if (other == kernels.end()) return "";
  return fmt::format(
      "{} computes with other instructions, GPUs or libraries than rank 0 ({}; rank 0: {}): the run is right, but as "
      "slow as its slowest process, and its bytes are not those of a run on hosts of one kind",
      world.place(static_cast<int>(other - kernels.begin())), *other, kernels.front());
}

}  // namespace arbalest::jobs
