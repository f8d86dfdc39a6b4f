#include "train/data/data_folder.h"

#include <system_error>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

std::string data_folder_hint(const fs::path& directory) {
  if (directory.is_absolute()) return "change the directory of the job's data";
  const bool is_root = directory.lexically_normal() == ".";
  return fmt::format(
      "name {} with --data-root or $ARBALEST_DATA",
      is_root ? "the folder of the data" : fmt::format("the folder that holds '{}'", directory.string()));
}

void require_data_folder(const fs::path& folder, const std::string& directory) {
  std::error_code error;
  if (fs::exists(folder, error) || error) return;  // the reader of the files knows more about the error
  engine::fail(engine::ErrorKind::kData, "'{}' does not exist, so the dataset is missing; {}", folder.string(),
               data_folder_hint(directory));
}

}  // namespace arbalest::jobs
