// Reads images and labels from two NumPy .npy files
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <memory>

#include "dataflow/input/formats/split_files.h"
#include "dataflow/input/images/stored_images.h"

namespace arbalest::dataflow {

// Pixel is std::uint8_t (unsigned bytes) or float (float32 or float64 arrays). The examples are images [n, c, h, w],
// whose dimensions of extent 1 may be missing; the labels are integers of any size [n], in [0, classes). Throws
// ErrorKind::kData, naming the file, if a file is missing, not a .npy file, truncated, too long, in Fortran order, or
// of another type (such as pickled objects) or shape, or if the numbers of images and labels differ. For labels out of
// range and values that are not finite, the error also names the record. Throws kOutOfMemory, before it allocates, for
// arrays beyond `budget`.
template <typename Pixel>
std::unique_ptr<StoredImages<Pixel>> load_npy(const SplitFiles& source);

}  // namespace arbalest::dataflow
