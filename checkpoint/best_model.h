// best.safetensors: the best model of a run at the end of an epoch, in the run's directory. The file says which model
// it is, so a run that goes back to an earlier checkpoint can tell whether the file is part of its history.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/run_state.h"
#include "checkpoint/score_order.h"
#include "saved_model/model_description.h"
#include "scheduler/replicas/training_state.h"

namespace arbalest::jobs {

inline constexpr const char* kBestModel = "best.safetensors";
// The best model that the last checkpoint names, while best.safetensors is already a better one.
inline constexpr const char* kEarlierBest = "best.safetensors.earlier";

// Returns the SHA-256 of the file. `metadata`: the model's description. Throws as write_safetensors does.
std::string write_best_model(const std::filesystem::path& run_directory, const scheduler::Tensors& model,
                             const BestModel& best, const Metadata& metadata = {});
// Returns the SHA-256 that the file of this model has, and writes nothing.
std::string best_model_sha256(const scheduler::Tensors& model, const BestModel& best, const Metadata& metadata = {});

// Keeps the present best.safetensors as the earlier one, which it replaces. Throws as fail_write does.
void keep_earlier_best(const std::filesystem::path& run_directory);
// Removes the earlier one, if there is any: the last checkpoint names best.safetensors.
void forget_earlier_best(const std::filesystem::path& run_directory);

// Returns what best.safetensors says about itself; none if there is no such file, or if it does not tell.
std::optional<BestModel> best_model_in(const std::filesystem::path& run_directory);

// A run that begins or goes on, and its best model until there.
struct BestModelNeeds {
  std::filesystem::path run_directory;    // where the run goes on
  std::filesystem::path checkpoint = {};  // the checkpoint that it goes on from; "": it begins
  std::uint64_t batches = 0;              // mini-batches that it has trained
  std::optional<BestModel> best = {};     // RunState::best_model
  bool keeps = true;                      // whether the job keeps a best model
  ScoreOrder order = {};
  Metadata metadata = {};  // the model's description
};

// Makes best.safetensors the model that `needs.best` names. A file of another model gets the name
// best.safetensors.superseded, and one that has another SHA-256 best.safetensors.damaged. The bytes come from that
// file, from the earlier one, from the run of the checkpoint, or from a checkpoint that was saved with this model. If
// none of them has it, best.safetensors becomes the best model of the checkpoints until here, or there is none. Returns
// the model that the file holds then. `warn` is told what is missing or renamed, and of errors.
std::optional<BestModel> take_over_best_model(const BestModelNeeds& needs,
                                              const std::function<void(const std::string&)>& warn);

}  // namespace arbalest::jobs
