#include "jobs/checkpoint/run_transfer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/process/packing.h"
#include "jobs/checkpoint/run_state_text.h"
#include "jobs/export/safetensors.h"

namespace arbalest::jobs {

using engine::process::World;
using scheduler::Tensors;

namespace {

constexpr const char* kState = "state";  // no file of a run has this name

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
  std::vector<std::string> parts = {kState, run_state_text(saved)};
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
  return saved;
}

}  // namespace

void gather_learners(World& world, scheduler::TrainingState& training) {
  if (world.size() == 1) return;
  SavedRun own;
  own.training.optimizer_slots = training.optimizer_slots;
  own.training.learners = std::exchange(training.learners, {});
  for (const std::string& bytes : world.gather(pack_files(own))) {
    for (scheduler::LearnerState& learner : unpack_files(bytes).training.learners) {
      training.learners.push_back(std::move(learner));
    }
  }
}

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
