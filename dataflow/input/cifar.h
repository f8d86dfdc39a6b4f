// The binary files of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html): records of a label (in
// CIFAR-100 a coarse one and the fine one, which is used) and 32 x 32 pixels in three planes, red, green and blue.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/stored_images.h"

namespace arbalest::dataflow {

enum class CifarVersion { k10, k100 };  // classes

InputDescription cifar_description(CifarVersion version);

struct CifarSource {
  CifarVersion version = CifarVersion::k10;
  // Holds data_batch_1.bin ... data_batch_5.bin and test_batch.bin; of CIFAR-100, train.bin and test.bin.
  std::filesystem::path directory;
  Normalization normalization;
};

// Throws ErrorKind::kData, naming file and record, if a file is missing, unreadable, empty or corrupt, does not end
// with a whole record, or holds a label that is out of range. Files with another number of records than the published
// ones, which may be cut short between two records as well as made so on purpose, are said in `warnings`.
std::unique_ptr<ByteImages> load_cifar(const CifarSource& source, Split split, std::vector<std::string>& warnings);

}  // namespace arbalest::dataflow
