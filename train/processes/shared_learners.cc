#include "train/processes/shared_learners.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>

#include "checkpoint/learner_files.h"
#include "checkpoint/transfer/file_transfer.h"
#include "engine/base/error.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;

namespace {

// Learners of one rank, by number over all.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

std::vector<Range> ranges_of(World& world, const std::vector<int>& per_device) {
  std::vector<Range> ranges;
  std::size_t first = 0;
  for (const int count : join(world, {std::reduce(per_device.begin(), per_device.end())})) {
    ranges.push_back({first, static_cast<std::size_t>(count)});
    first += ranges.back().count;
  }
  return ranges;
}

bool is_same(const ManifestEntry& a, const ManifestEntry& b) {
  return a.name == b.name && a.size == b.size && a.xxh3_128 == b.xxh3_128;
}

// Reads the learners from this process's view of the checkpoint. Returns whether that has worked.
bool try_to_read(SavedRun& saved, const Range& own) {
  try {
    if (!std::ranges::equal(read_checkpoint_manifest(saved.source.path).files, saved.source.files, is_same))
      return false;
    read_learners(saved, own.first, own.count);
    return true;
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kCheckpoint) throw;
    return false;
  }
}

// Calls `step` for each learner of the range, even after an error, so that sender and receiver stay together. Keeps the
// first error in `failure`.
void for_each(const Range& range, std::exception_ptr& failure, const std::function<void(std::size_t)>& step) {
  for (std::size_t j = range.first; j < range.first + range.count; ++j) {
    try {
      step(j);
    } catch (const engine::Error& error) {
      if (error.kind() == engine::ErrorKind::kPeer) throw;
      if (!failure) failure = std::current_exception();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
}

// After an error of a file, the receivers get the error instead of all later files.
void send_learners(World& world, int to, const Range& range, const SavedRun& saved, std::exception_ptr& failure) {
  for_each(range, failure, [&](std::size_t j) {
    send_file(world, to, [&](const Write& write) {
      if (failure) std::rethrow_exception(failure);
      stream_file(saved.source, learner_file(j), write);
    });
  });
}

// The sender verifies the checksum with the last bytes of a file, so its error arrives before the end.
void receive_learners(World& world, const Range& range, SavedRun& saved, std::exception_ptr& failure) {
  for_each(range, failure, [&](std::size_t j) {
    IncomingFile file(world, 0);
    const std::uint64_t size = entry_of(saved.source, learner_file(j)).size;
    parse_learner(
        size, [&](std::span<std::byte> bytes) { file.read(bytes); }, j, saved.training);
    file.require_end();
  });
}

}  // namespace

void read_own_learners(World& world, const std::vector<int>& per_device, SavedRun& saved) {
  const std::vector<Range> ranges = ranges_of(world, per_device);
  if (ranges.back().first + ranges.back().count != saved.training.learners.size()) return;
  const Range& own = ranges[static_cast<std::size_t>(world.rank())];
  bool needs_help = false;
  together(world, [&] {
    const World::FileWork work(world);
    if (world.rank() == 0) {
      read_learners(saved, own.first, own.count);
    } else {
      needs_help = !try_to_read(saved, own);
    }
  });
  if (world.size() == 1) return;
  const std::vector<int> need_help = join(world, {needs_help ? 1 : 0});
  together(world, [&] {
    const World::FileWork work(world);
    std::exception_ptr failure;
    for (int rank = 1; rank < world.size(); ++rank) {
      const auto place = static_cast<std::size_t>(rank);
      if (need_help[place] == 0) continue;
      if (world.rank() == 0) send_learners(world, rank, ranges[place], saved, failure);
      if (world.rank() == rank) receive_learners(world, ranges[place], saved, failure);
    }
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace arbalest::jobs
