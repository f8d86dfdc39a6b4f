#include "scheduler/replicas/device_copies.h"

#include <cstdint>
#include <sstream>

#include <fmt/format.h>

#include "engine/process/all_gather.h"

namespace arbalest::scheduler {

DeviceCopies copies_of_all(engine::process::World& world, std::span<const std::string> devices,
                           const sma::CopyHashes& hashes, bool has_diverged) {
  if (world.size() == 1) return {{devices.begin(), devices.end()}, hashes, has_diverged};
  // The first line tells of a divergence. Each device has a line with its name and its hashes.
  std::string own = has_diverged ? "diverged\n" : "\n";
  for (std::size_t d = 0; d < devices.size(); ++d) {
    own += devices[d];
    for (const std::uint64_t hash : hashes[d]) own += fmt::format(" {}", hash);
    own += '\n';
  }
  DeviceCopies copies;
  const std::vector<std::string> parts = engine::process::all_gather(world, own);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    std::istringstream lines(parts[rank]);
    std::string line;
    std::getline(lines, line);
    copies.has_diverged = copies.has_diverged || !line.empty();
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      std::string name;
      fields >> name;
      const int number = static_cast<int>(rank);
      copies.devices.push_back(fmt::format("{} of rank {} on {}", name, number, world.host(number)));
      std::vector<std::uint64_t>& of_device = copies.hashes.emplace_back();
      for (std::uint64_t hash = 0; fields >> hash;) of_device.push_back(hash);
    }
  }
  return copies;
}

}  // namespace arbalest::scheduler
