// Images and labels as two arrays of NumPy's .npy files
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dataflow/input/dataset.h"
#include "dataflow/input/stored_images.h"

namespace arbalest::dataflow {

struct NpySource {
  std::string name;
  std::filesystem::path images;  // [n, c, h, w]; extents of 1 may be left out
  std::filesystem::path labels;  // integers of any size [n], in [0, classes)
  InputDescription expected;
  Normalization normalization;
};

// Images of unsigned bytes (std::uint8_t) or of floating-point numbers (float; arrays of float64, too). Throws
// ErrorKind::kData, naming the file, if one is missing, no .npy file, truncated or too long, in Fortran order, of
// another type (pickled objects among them) or shape, if images and labels do not fit together, and for labels that
// are out of range and numbers that are not finite, with their record.
template <typename Pixel>
std::unique_ptr<StoredImages<Pixel>> load_npy(const NpySource& source);

}  // namespace arbalest::dataflow
