// Reads rows of a NumPy array (.npy) that a model is asked about.
#pragma once

#include <filesystem>
#include <memory>

#include "dataflow/input/dataset.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

// Reads the array: bytes or numbers [n, c, h, w], whose extents of 1 may be missing, or ids [n, columns]. Reading a row
// with a number that is not finite, or an id that the model does not know, throws kData; the other rows can be read.
// Throws kData, naming the file, if it is no array, or of a type or shape that the model does not read.
std::unique_ptr<const dataflow::Dataset> open_prediction_array(const ModelDescription& description,
                                                               const std::filesystem::path& path);

}  // namespace arbalest::jobs
