#include "engine/versions.h"

#include "engine/cpu/version.h"
#include "engine/host/version.h"

namespace arbalest::engine {

std::vector<LibraryVersion> library_versions() {
  return {{"oneDNN", cpu::onednn_version()}, {"oneTBB", host::onetbb_version()}};
}

}  // namespace arbalest::engine
