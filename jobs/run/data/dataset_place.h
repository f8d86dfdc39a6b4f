// Finds the folder of a job's data.
#pragma once

#include <filesystem>
#include <string>

namespace arbalest::jobs {

// Throws ErrorKind::kData, with the way out, if `folder` does not exist. `directory`: as the job names the folder,
// below the data root or as an absolute path.
void require_data_folder(const std::filesystem::path& folder, const std::string& directory);

}  // namespace arbalest::jobs
