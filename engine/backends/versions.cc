#include "engine/backends/versions.h"

#include "engine/backends/cuda_devices.h"
#include "engine/cpu/onednn/version.h"
#include "engine/host/version.h"

namespace arbalest::engine {

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> versions{{"oneDNN", cpu::onednn_version()}, {"oneTBB", host::onetbb_version()}};
  for (LibraryVersion& version : cuda_library_versions()) versions.push_back(std::move(version));
  return versions;
}

}  // namespace arbalest::engine
