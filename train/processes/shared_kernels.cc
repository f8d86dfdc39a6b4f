#include "train/processes/shared_kernels.h"

#include <string>

#include "checkpoint/kernel_choices_text.h"

namespace arbalest::jobs {

void share_kernel_choices(engine::process::World& world, std::span<const std::unique_ptr<engine::Device>> devices) {
  std::string text;
  if (world.rank() == 0) text = kernel_choices_text(devices.front()->kernel_choices());
  world.broadcast(text);
  if (world.rank() == 0) return;
  for (const auto& device : devices)
    device->take_kernel_choices(parse_kernel_choices(SourceText("kernels of rank 0", text)));
}

}  // namespace arbalest::jobs
