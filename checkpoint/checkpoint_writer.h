// Writes a checkpoint: all of it, or nothing that a reader takes for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/partial_directory.h"
#include "dataflow/parameter_layout.h"

namespace arbalest::jobs {

// "000000012345": names sort as their numbers do.
std::string checkpoint_name(std::uint64_t batches);

// The files lie in `<checkpoints>/.partial-<process>-<number>/` until commit(). Each is synced when it is complete. All
// errors are those of fail_write. After an error nothing but destruction is allowed, which removes the files; fsync is
// never repeated.
class CheckpointWriter {
 public:
  // Creates the directory `checkpoints` if it does not exist; its parent must. `batches`: mini-batches done.
  CheckpointWriter(const std::filesystem::path& checkpoints, std::uint64_t batches);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Each name once; is_checkpoint_file_name must hold. The bytes depend on the arguments only.
  void add_text(std::string_view name, std::string_view text);
  void add_tensors(std::string_view name, std::span<const dataflow::NamedTensor> tensors,
                   const std::map<std::string, std::string>& metadata);

  // `fill` passes the bytes to its argument.
  void add(std::string_view name, const Fill& fill);
  // Adds a file of another checkpoint, which is verified.
  void add_copy(const Checkpoint& checkpoint, std::string_view name);
  // Adds a file that another process has written to directory(). Throws DamagedCheckpoint if this process does not see
  // the same bytes.
  void add_written(const ManifestEntry& entry);
  // The directory of the files until commit().
  const std::filesystem::path& directory() const noexcept { return partial_.path(); }

  // Writes the manifest, then moves the directory to `<checkpoints>/<number>`, so that it survives a power loss.
  // Returns that path. A checkpoint that has this number is replaced in one step. File systems that cannot do that
  // (NFS) keep it, and commit fails with ErrorKind::kInternal. After an error the directory of checkpoints is as
  // before.
  std::filesystem::path commit();

 private:
  void add_entry(std::string_view name, const std::function<ManifestEntry()>& make);

  std::filesystem::path checkpoints_;
  PartialDirectory partial_;
  Manifest manifest_;
  bool usable_ = true;  // false after an error, and after commit
};

}  // namespace arbalest::jobs
