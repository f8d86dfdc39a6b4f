// The IDX files of MNIST and Fashion-MNIST (http://yann.lecun.com/exdb/mnist): "train-images-idx3-ubyte" and its
// siblings, raw or compressed with gzip, with or without ".gz".
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dataflow/input/dataset.h"
#include "dataflow/input/stored_images.h"

namespace arbalest::dataflow {

struct IdxSource {
  std::string name;                 // "mnist"
  std::filesystem::path directory;  // holds the four files
  InputDescription expected;        // image: [1, h, w]; at most 256 classes
  Normalization normalization;
};

// Throws ErrorKind::kData, naming file and offset or record, if a file is missing, unreadable, truncated, too long or
// corrupt, does not hold what is expected, or if images and labels do not fit together.
std::unique_ptr<ByteImages> load_idx(const IdxSource& source, Split split);

}  // namespace arbalest::dataflow
