// The saved weights that a job starts from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "options/parameters/name_pattern.h"

namespace arbalest::jobs {

struct InitializeOptions {
  struct Rename {
    NamePattern from;
    std::string to;  // has the wildcards of `from`
  };

  std::string path;  // absolute path of a safetensors file or of a run's directory
  std::vector<Rename> renames;
  std::vector<NamePattern> fresh;   // parameters of the model that keep their initial values
  std::vector<NamePattern> ignore;  // tensors of the file that are not read
  // Makes an error that points at `from` in the job file or its --set; unset if the options are no job's.
  std::function<engine::Error(std::string message)> error = {};
};

}  // namespace arbalest::jobs
