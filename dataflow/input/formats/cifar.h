// Reads the binary files of CIFAR-10 and CIFAR-100 (https://www.cs.toronto.edu/~kriz/cifar.html). A record holds a
// label (in CIFAR-100 a coarse and a fine one; the fine one is used) and 32 x 32 pixels in three planes: red, green,
// blue.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

enum class CifarVersion { k10, k100 };  // number of classes

InputDescription cifar_description(CifarVersion version);

struct CifarSource {
  CifarVersion version = CifarVersion::k10;
  // Holds data_batch_1.bin ... data_batch_5.bin and test_batch.bin; for CIFAR-100 train.bin and test.bin.
  std::filesystem::path directory;
  Normalization normalization;
  // Name of the file with the validation set, which may be one of the training set: training then leaves it out. "":
  // there is none.
  std::string validation = {};
  engine::host::MemoryBudget budget{};
};

inline constexpr std::int64_t kCifar10FileExamples = 10'000;  // in each published file

// Whether the file is part of the published training set.
bool is_training_file(CifarVersion version, const std::string& name);

// Throws ErrorKind::kData, naming file and record, if a file is missing, unreadable, empty or corrupt, ends within a
// record, or holds a label that is out of range. Adds a warning for a file whose number of records differs from the
// published one: it may have been cut short between two records, or made that way on purpose. Throws kOutOfMemory,
// before it allocates, for images beyond the source's budget.
std::unique_ptr<ByteImages> load_cifar(const CifarSource& source, Split split, std::vector<std::string>& warnings);

}  // namespace arbalest::dataflow
