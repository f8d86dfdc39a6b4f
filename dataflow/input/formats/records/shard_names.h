// Names of shards that state how many there are, such as "train-00002-of-00005.tfrecord".
#pragma once

#include <filesystem>
#include <span>

namespace arbalest::dataflow {

// Checks that all shards are there according to their own names, each once.
//
// A name states a number and a count as "2-of-5", with or without zeros in front; the last such part counts. The shards
// of a set differ in this part and in what follows the first dot behind it (".tfrecord", ".tfrecord.gz"); whatever else
// differs in the names makes them different sets, each of which must be complete. Shards are numbered from 0 or from 1.
// Files with other names are ignored.
//
// paths: files of one folder. Throws ErrorKind::kData and names the shards that are missing, a shard that is there
// twice, or two shards of one set that state different counts.
void check_complete(std::span<const std::filesystem::path> paths);

}  // namespace arbalest::dataflow
