// All processes of a run must train and evaluate on the same examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

// Compares what can be compared before training: all of a dataset in memory; of files their number, the labels and up
// to 64 examples. A call of World's operations. Throws SharedError of kind kData that names a process.
void require_same_data(engine::process::World& world, const dataflow::Dataset& data);

// Compares files as the processes read them. Each reads other ones in each epoch, so a difference is found when the
// second process has read the file. All processes must have begun the dataset's log.
class SharedReads {
 public:
  // Both must outlive it.
  SharedReads(engine::process::World& world, const dataflow::Dataset& data) : world_(world), data_(data) {}

  // Compares what was read since the last call with all that was read before. A call of World's operations. Throws
  // SharedError of kind kData that names the file and two processes. A process sends 8 bytes for each example that it
  // has read.
  void compare();

 private:
  struct Known {
    std::uint32_t checksum = 0;
    int rank = -1;  // that has read it first; -1: none
  };

  // Returns what is wrong with a process's reads; "" if nothing is.
  std::string add(int rank, const std::string& bytes);

  engine::process::World& world_;
  const dataflow::Dataset& data_;
  std::vector<Known> known_;  // by example; on rank 0
};

}  // namespace arbalest::jobs
