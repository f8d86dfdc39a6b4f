// "Did you mean ...?" for files and directories.
#pragma once

#include <filesystem>
#include <string>

namespace arbalest::jobs {

// "; did you mean '/data/model.safetensors'?" for a path that does not exist: names the entry nearest to the first part
// that is missing. "; there is no '/data'" if that is another part than the last and no entry is near; else "".
std::string nearest_path_hint(const std::filesystem::path& path);

}  // namespace arbalest::jobs
