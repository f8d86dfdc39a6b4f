// Reads the IDX files of MNIST and Fashion-MNIST (http://yann.lecun.com/exdb/mnist): "train-images-idx3-ubyte" and its
// siblings, raw or compressed with gzip, with or without the extension ".gz".
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

struct IdxSource {
  std::string name;                 // "mnist"
  std::filesystem::path directory;  // holds the four files
  InputDescription expected;        // images [1, h, w] of at most 256 classes
  Normalization normalization;
  // Names of the validation set's files; with or without ".gz". They are empty if it has none.
  std::string validation_images = {};
  std::string validation_labels = {};
  engine::host::MemoryBudget budget{};
};

// Throws ErrorKind::kData, naming file and offset or record, if a file is missing, unreadable, truncated, too long or
// corrupt, if its content differs from `expected`, or if the numbers of images and labels differ. Throws kOutOfMemory,
// before it allocates, for images beyond `budget`; the header of a compressed file tells their size, too.
std::unique_ptr<ByteImages> load_idx(const IdxSource& source, Split split);

}  // namespace arbalest::dataflow
