// Finds the folder of a job's data.
#pragma once

#include <filesystem>
#include <string>

namespace arbalest::jobs {

// Returns what to do if data are missing in `directory`, as below: only a folder below the data root is found by
// another root.
std::string data_folder_hint(const std::filesystem::path& directory);

// Throws ErrorKind::kData, with the way out, if `folder` does not exist. `directory`: as the job names the folder,
// below the data root or as an absolute path.
void require_data_folder(const std::filesystem::path& folder, const std::string& directory);

}  // namespace arbalest::jobs
