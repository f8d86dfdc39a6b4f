#include "checkpoint/checkpoint_store.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/partial_directory.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

using Warn = std::function<void(const std::string&)>;

// The number of a checkpoint's name; none if the name is another one.
std::optional<std::uint64_t> number_of(std::string_view name) {
  constexpr std::size_t kMinDigits = 12;
  if (name.size() < kMinDigits) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::vector<fs::directory_entry> entries_of(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(*entry);
  }
  if (!error || error == std::errc::no_such_file_or_directory) return entries;
  engine::fail(ErrorKind::kCheckpoint, "cannot read the directory of checkpoints '{}': {}; make it readable",
               directory.string(), error.message());
}

bool is_real_directory(const fs::directory_entry& entry) {
  std::error_code gone;
  return entry.symlink_status(gone).type() == fs::file_type::directory;
}

struct Candidate {
  fs::path path;
  std::uint64_t batches = 0;  // from the manifest; from the name if the manifest cannot be used
  std::string unreadable;     // why the manifest cannot be used although it is not damaged; "": it can, or is damaged
};

// Newest first.
std::vector<Candidate> candidates_in(const fs::path& checkpoints) {
  std::vector<Candidate> found;
  for (const fs::directory_entry& entry : entries_of(checkpoints)) {
    const std::optional<std::uint64_t> number = number_of(entry.path().filename().native());
    if (!number || !is_real_directory(entry)) continue;
    Candidate candidate{entry.path(), *number, ""};
    try {
      candidate.batches = read_checkpoint_manifest(entry.path()).batches;
    } catch (const DamagedCheckpoint&) {  // found again when the checkpoint is verified
    } catch (const engine::Error& error) {
      if (error.kind() != ErrorKind::kCheckpoint) throw;
      candidate.unreadable = error.what();
    }
    found.push_back(std::move(candidate));
  }
  std::ranges::sort(found, std::greater<>(), [](const Candidate& one) { return std::pair(one.batches, one.path); });
  return found;
}

// Returns `path` with `ending`, and a number behind it if something has that name.
fs::path free_name(const fs::path& path, std::string_view ending) {
  fs::path name = path;
  name += ending;
  const fs::path base = name;
  for (int number = 2; fs::symlink_status(name).type() != fs::file_type::not_found; ++number) {
    name = base;
    name += fmt::format("-{}", number);
  }
  return name;
}

void pass_over(const fs::path& path, const DamagedCheckpoint& damage, const Warn& warn) {
  const fs::path name = free_name(path, ".damaged");
  std::error_code error;
  fs::rename(path, name, error);
  if (error) {
    warn(fmt::format("{}\nit is passed over, but cannot be renamed to '{}': {}", damage.what(),
                     name.filename().string(), error.message()));
  } else {
    warn(fmt::format("{}\nit is passed over, and is now named '{}'", damage.what(), name.filename().string()));
  }
}

void remove_checkpoint(const fs::path& checkpoints, const fs::path& path, const Warn& warn) {
  const fs::path name = free_name(checkpoints / fmt::format("{}{}", kPartialPrefix, getpid()), "-deleted");
  std::error_code error;
  fs::rename(path, name, error);
  if (error) {
    warn(fmt::format("cannot delete the old checkpoint '{}': {}; it stays until you delete it", path.string(),
                     error.message()));
    return;
  }
  sync_directory(checkpoints);  // no file may be gone while the old name could come back
  if (const int problem = remove_checkpoint_files(name); problem != 0) {
    warn(
        fmt::format("cannot delete the files of the old checkpoint '{}', which are now in '{}': {}; the next start of "
                    "the run tries again",
                    path.string(), name.string(), std::strerror(problem)));
  }
}

}  // namespace

std::optional<Checkpoint> newest_checkpoint(const fs::path& checkpoints, const Warn& warn, Damaged damaged) {
  for (const fs::directory_entry& entry : entries_of(checkpoints)) {
    std::error_code gone;
    if (number_of(entry.path().filename().native()) && entry.symlink_status(gone).type() == fs::file_type::regular) {
      warn(fmt::format("'{}' is a file, and a checkpoint is a directory; it is passed over: remove it",
                       entry.path().string()));
    }
  }
  for (const Candidate& candidate : candidates_in(checkpoints)) {
    try {
      return open_checkpoint(candidate.path);
    } catch (const DamagedCheckpoint& damage) {
      if (damaged == Damaged::kRename) {
        pass_over(candidate.path, damage, warn);
      } else {
        warn(fmt::format("{}\nit is passed over", damage.what()));
      }
    }
  }
  return std::nullopt;
}

std::vector<Checkpoint> list_checkpoints(const fs::path& checkpoints) {
  std::vector<Checkpoint> found;
  for (const Candidate& candidate : candidates_in(checkpoints)) {
    try {
      found.push_back(read_checkpoint_manifest(candidate.path));
    } catch (const engine::Error& error) {  // newest_checkpoint tells it when it is asked for the checkpoint
      if (error.kind() != ErrorKind::kCheckpoint) throw;
    }
  }
  std::ranges::reverse(found);
  return found;
}

fs::path set_aside(const fs::path& path, std::string_view ending) {
  const fs::path name = free_name(path, fmt::format(".{}", ending));
  std::error_code error;
  fs::rename(path, name, error);
  if (error) fail_write(path, error.value());
  return name;
}

void sweep_partial(const fs::path& checkpoints) {
  for (const fs::directory_entry& entry : entries_of(checkpoints)) {
    const bool is_partial = entry.path().filename().native().starts_with(kPartialPrefix);
    if (is_partial && is_real_directory(entry)) remove_if_abandoned(entry.path());
  }
}

void retain(const fs::path& checkpoints, int keep_last, std::span<const std::uint64_t> kept, const Warn& warn) {
  ARBALEST_CHECK(keep_last >= 1);
  int verified = 0;
  for (const Candidate& candidate : candidates_in(checkpoints)) {
    if (!candidate.unreadable.empty()) {
      warn(candidate.unreadable);
      continue;
    }
    if (verified == keep_last) {
      if (std::ranges::find(kept, candidate.batches) == kept.end()) {
        remove_checkpoint(checkpoints, candidate.path, warn);
      }
      continue;
    }
    try {
      open_checkpoint(candidate.path);
      ++verified;
    } catch (const DamagedCheckpoint& damage) {
      pass_over(candidate.path, damage, warn);
    } catch (const engine::Error& error) {
      if (error.kind() != ErrorKind::kCheckpoint) throw;
      warn(error.what());
    }
  }
}

}  // namespace arbalest::jobs
