// Takes known files out of a tar archive, raw or compressed with gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "fetch/dataset_downloads.h"

namespace arbalest::jobs {

// Writes `members` of the archive to their names in `directory`, each whole or not at all. Nothing else is written: the
// paths, links and folders in the archive are names to compare with, and decide no place. Throws kData, naming the
// archive, if it is damaged or lacks a member, if a member has another length or checksum, or if the
// archive unpacks to more than `most_bytes`; throws as fail_write does (saved_model/atomic_file.h).
void unpack(const std::filesystem::path& archive, const std::vector<ArchiveMember>& members,
            const std::filesystem::path& directory, std::uint64_t most_bytes);

}  // namespace arbalest::jobs
