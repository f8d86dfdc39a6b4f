#include "checkpoint/transfer/run_transfer.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/run_state_text.h"
#include "engine/process/packing.h"
#include "saved_model/safetensors.h"

namespace arbalest::jobs {

using engine::process::World;
using scheduler::Tensors;

namespace {

// No file of a run has these names.
constexpr const char* kState = "state";
constexpr const char* kPath = "path";
constexpr const char* kManifest = "manifest";

std::string bytes_of(const Tensors& tensors) {
  std::string bytes;
  put_safetensors(tensors, {}, [&](std::span<const std::byte> piece) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return bytes;
}

Tensors tensors_of(std::string_view bytes) {
  const char* next = bytes.data();
  return parse_safetensors(bytes.size(), [&](std::span<std::byte> piece) {
    std::memcpy(piece.data(), next, piece.size());
    next += piece.size();
  });
}

std::string pack_files(const SavedRun& saved) {
  const Checkpoint& source = saved.source;
  std::vector<std::string> parts = {kState,    run_state_text(saved),
                                    kPath,     source.path.string(),
                                    kManifest, print_manifest({.batches = source.batches, .files = source.files})};
  const auto add = [&](const std::string& name, std::string bytes) {
    parts.push_back(name);
    parts.push_back(std::move(bytes));
  };
  put_saved_run(saved, {.text = add, .tensors = [&](const std::string& name, const Tensors& tensors) {
                          add(name, bytes_of(tensors));
                        }});
  return engine::process::pack(parts);
}

SavedRun unpack_files(const std::string& bytes) {
  const std::vector<std::string> parts = engine::process::unpack(bytes);
  std::map<std::string, const std::string*> files;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) files[parts[i]] = &parts[i + 1];
  SavedRun saved = parse_run_state(*files.at(kState));
  take_vectors(saved, {.has = [&](const std::string& name) { return files.contains(name); },
                       .text = [&](const std::string& name) { return *files.at(name); },
                       .tensors = [&](const std::string& name) { return tensors_of(*files.at(name)); }});
  Manifest manifest = parse_manifest(*files.at(kManifest));
  saved.source = {.path = *files.at(kPath), .batches = manifest.batches, .files = std::move(manifest.files)};
  return saved;
}

}  // namespace

void broadcast_run(World& world, SavedRun& saved) {
  if (world.size() == 1) return;
  std::string bytes;
  if (world.rank() == 0) {
    Tensors model = std::exchange(saved.model, {});
    bytes = pack_files(saved);
    saved.model = std::move(model);
  }
  world.broadcast(bytes);
  if (world.rank() != 0) saved = unpack_files(bytes);
}

}  // namespace arbalest::jobs
