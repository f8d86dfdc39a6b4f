#include "train/processes/shared_data.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "train/data/dataset_fingerprint.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using dataflow::ReadExample;
using engine::process::World;

namespace {

constexpr const char* kRemedy = "copy the same files to all hosts, or name a directory that all share (--data-root)";

[[noreturn]] void refuse(const World& world, int rank, int other) {
  throw SharedError(engine::ErrorKind::kData, fmt::format("{} has other training, validation or test data than {}: {}",
                                                          world.place(rank), world.place(other), kRemedy));
}

}  // namespace

void require_same_data(World& world, const dataflow::Dataset& data) {
  if (world.size() == 1) return;
  const std::vector<int> others = world.agree(dataset_fingerprint(data));
  if (!others.empty()) refuse(world, others.front(), 0);
  // A process with little memory may read files that others hold in memory.
  const std::vector<std::string> digests = engine::process::all_gather(world, memory_digest(data));
  const auto first = std::ranges::find_if(digests, [](const std::string& digest) { return !digest.empty(); });
  for (auto other = first; other != digests.end(); ++other) {
    if (other->empty() || *other == *first) continue;
    refuse(world, static_cast<int>(other - digests.begin()), static_cast<int>(first - digests.begin()));
  }
}

void SharedReads::compare() {
  if (world_.size() == 1) return;
  static_assert(std::is_trivially_copyable_v<ReadExample>);
  const std::vector<ReadExample> read = data_.take_read_log();
  const auto bytes = std::as_bytes(std::span(read));
  const std::vector<std::string> reads =
      world_.gather(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::string problem;
  for (int rank = 0; rank < static_cast<int>(reads.size()) && problem.empty(); ++rank) {
    problem = add(rank, reads[static_cast<std::size_t>(rank)]);
  }
  world_.broadcast(problem);
  if (!problem.empty()) throw SharedError(engine::ErrorKind::kData, problem);
}

std::string SharedReads::add(int rank, const std::string& bytes) {
  if (known_.empty()) known_.resize(static_cast<std::size_t>(data_.size()));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(ReadExample)) {
    ReadExample read;
    std::memcpy(&read, bytes.data() + at, sizeof(ReadExample));
    Known& known = known_.at(read.example);
    if (known.rank < 0) known = {read.checksum, rank};
    if (known.checksum == read.checksum) continue;
    const std::string record = data_.record(read.example);
    if (known.rank == rank) {
      return fmt::format("{}: {} has read other bytes there than before: the file has changed while the run trained",
                         record, world_.place(rank));
    }
    return fmt::format("{}: {} has read other bytes there than {}: {}", record, world_.place(rank),
                       world_.place(known.rank), kRemedy);
  }
  return "";
}

}  // namespace arbalest::jobs
