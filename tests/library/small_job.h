// A job of the library on small arrays, which trains in milliseconds.
#pragma once

#include <arbalest/training.h>

#include <string>

#include "tests/support/small_datasets.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

// A directory with the arrays of a job in "arrays", and the options of a run in "run".
class SmallJob {
 public:
  explicit SmallJob(bool floats = false) {
    write_arrays(directory_ / "arrays", floats);
    options.job_text = job_text("npy { directory: 'arrays' classes: 3 height: 4 width: 5 channels: 1" +
                                std::string(floats ? " pixels: FLOAT32 }" : " }"));
    options.settings = {"training.max_epochs=4"};
    options.data_root = directory_.path().string();
    options.output = run();
  }

  std::string run() const { return (directory_ / "run").string(); }
  std::filesystem::path operator/(const std::string& name) const { return directory_ / name; }

  TrainingOptions options;

 private:
  TemporaryDirectory directory_;
};

}  // namespace arbalest::tests
