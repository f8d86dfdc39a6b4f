// Finds out which processes of a run see the same directory as rank 0.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/process/world.h"

namespace arbalest::jobs {

struct SharedView {
  std::vector<bool> sees;  // by rank: whether the rank and rank 0 read in the directory what the other has written
  std::string warning;     // about ranks that see the directory, but cannot use it; "": none. Rank 0 alone has it.
};

// All processes look for a file with random contents, which rank 0 writes, and answer with a file of their own. Each
// names the directory as it sees it. A call of World's operations; it does not throw if the directory cannot be used.
SharedView look_at(engine::process::World& world, const std::filesystem::path& directory);

}  // namespace arbalest::jobs
