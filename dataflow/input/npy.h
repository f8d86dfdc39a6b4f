// Images and labels as two arrays of NumPy's .npy files
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dataflow/input/byte_images.h"
#include "dataflow/input/dataset.h"

namespace arbalest::dataflow {

struct NpySource {
  std::string name;
  std::filesystem::path images;  // unsigned bytes [n, c, h, w], or [n, h, w] of one channel
  std::filesystem::path labels;  // integers of any size [n], in [0, classes)
  InputDescription expected;     // at most 256 classes
  Normalization normalization;
};

// Throws ErrorKind::kData, naming the file, if one is missing, no .npy file, truncated or too long, in Fortran order,
// of another type (pickled objects among them) or shape, if images and labels do not fit together, and for labels that
// are out of range, with their record.
std::unique_ptr<ByteImages> load_npy(const NpySource& source);

}  // namespace arbalest::dataflow
