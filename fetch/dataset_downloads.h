// Lists the published files of datasets for `arbalest data fetch`: places, lengths and checksums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace arbalest::jobs {

// A file in an archive that becomes a file of the dataset.
struct ArchiveMember {
  std::string path;         // in the archive: "cifar-10-batches-bin/test_batch.bin"
  std::string name;         // in the folder of the dataset
  std::uint64_t bytes = 0;  // 0: unknown, at most kMostTextBytes
  std::string sha256 = {};  // "": only the archive's is known
  // Returns why a file of that length, whose SHA-256 is not known, is not the published one, or "" if it may be.
  std::function<std::string(const std::filesystem::path&)> problem = {};
};

inline constexpr std::uint64_t kMostTextBytes = 1U << 16U;

// One published file.
struct Download {
  std::string name;  // the last part of its URLs
  std::uint64_t bytes = 0;
  std::string sha256;
  std::vector<std::string> folders;         // URLs of the folders that hold it, in the order in which they are tried
  std::vector<ArchiveMember> members = {};  // empty: the file itself belongs to the dataset
};

struct DatasetDownloads {
  std::string name;    // of its field in a job's data: "mnist"
  std::string folder;  // below the data root
  std::vector<Download> downloads;
};

// "mnist", "fashion_mnist", "cifar10", "cifar100"
const std::vector<DatasetDownloads>& known_downloads();
// `name`: of the dataset, or of its folder. Throws kUsage, with the names that there are.
const DatasetDownloads& downloads_of(const std::string& name);

}  // namespace arbalest::jobs
