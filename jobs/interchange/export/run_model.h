// Finds the job and the weights of a run whose model is exported.
#pragma once

#include <filesystem>
#include <string>

namespace arbalest::jobs {

struct RunModel {
  std::filesystem::path job;      // the run's job.txtpb
  std::filesystem::path weights;  // in safetensors format
  std::string sha256;             // of the weights' file; "" if it is not known
};

// `run`: directory of a run, or of one of its checkpoints. `checkpoint`: "" for the final model, "best", "last", or the
// number of a checkpoint. Throws kUsage if there is no such run or checkpoint, kCheckpoint if there is no such model or
// it is damaged.
RunModel find_run_model(const std::filesystem::path& run, const std::string& checkpoint);

}  // namespace arbalest::jobs
