// Recognizes a dataset, so that a run is not resumed on another one.
#pragma once

#include <cstdint>
#include <string>

#include "dataflow/input/dataset.h"

namespace arbalest::jobs {

// A hash of the dataset's description, its labels, and up to 64 of its examples, evenly spaced. Reading all of them
// could take as long as an epoch. The second form: of `examples` examples from `first` on.
std::string dataset_fingerprint(const dataflow::Dataset& data);
std::string dataset_fingerprint(const dataflow::Dataset& data, std::int64_t first, std::int64_t examples);

// A hash of all examples of a dataset that is in memory; "" for one that reads some of them from files.
std::string memory_digest(const dataflow::Dataset& data);

}  // namespace arbalest::jobs
