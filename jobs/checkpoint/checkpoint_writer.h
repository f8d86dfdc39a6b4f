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

#include "dataflow/parameter_layout.h"
#include "jobs/checkpoint/manifest.h"
#include "jobs/checkpoint/partial_directory.h"

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

  // Writes the manifest, then moves the directory to `<checkpoints>/<number>`, so that it survives a power loss.
  // Returns that path. A checkpoint that has this number is replaced in one step. File systems that cannot do that
  // (NFS) keep it, and commit fails with ErrorKind::kInternal. After an error the directory of checkpoints is as
  // before.
  std::filesystem::path commit();

 private:
  using Write = std::function<void(std::span<const std::byte>)>;
  // Writes and syncs a file; returns its manifest entry.
  ManifestEntry write_file(std::string_view name, const std::function<void(const Write&)>& fill);
  void add(std::string_view name, const std::function<void(const Write&)>& fill);

  std::filesystem::path checkpoints_;
  PartialDirectory partial_;
  Manifest manifest_;
  bool usable_ = true;  // false after an error, and after commit
};

}  // namespace arbalest::jobs
