// Fetches the published files of a dataset into its folder below the data root.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fetch/dataset_downloads.h"

namespace arbalest::jobs {

struct FetchProgress {
  const std::string& file;
  std::uint64_t bytes = 0;  // that are there
  std::uint64_t all_bytes = 0;
};

struct FetchOptions {
  std::filesystem::path data_root;  // made if it is missing
  // A mirror: the URL of a folder (https:// or http://), or a local folder that holds the files, or holds a folder
  // named like the dataset's with them. "": the places that publish the dataset.
  std::string from = {};
  std::function<bool()> stop = {};                            // asked several times a second
  std::function<void(const FetchProgress&)> progress = {};    // called for each piece that comes
  std::function<void(const std::string&)> warn = {};          // told what went wrong before another try
  std::chrono::milliseconds pause = std::chrono::seconds(1);  // before the first further try; then longer ones
};

struct FetchedFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  bool was_there = false;
};

struct FetchReport {
  std::vector<FetchedFile> files;
  bool is_stopped = false;  // parts that have come stay for the next time
};

// Only files with the published length and checksum get their names. What has come of others stays as NAME.part, and
// the next call goes on there. Files that are there already are checked and kept. Throws kUsage if `from` is no mirror,
// kData if a file cannot be had, is not the published one, or if another file has its name; throws as fail_write does
// (saved_model/atomic_file.h).
FetchReport fetch(const DatasetDownloads& dataset, const FetchOptions& options);

}  // namespace arbalest::jobs
