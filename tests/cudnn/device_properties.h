// The GPU of a query, described by a file of its properties.
#pragma once

#include <filesystem>

#include "tests/cudnn/library.h"

namespace arbalest::tests::cudnn {

// Returns the finalized descriptor of the device in the JSON file. h100.json lists the properties that cuDNN needs.
// Throws engine::Error of kind kInvalidJob with "file:line:column: error: ..." if the file cannot be read, is not JSON,
// lacks a property, or has an invalid one. If cuDNN rejects the properties, the message includes cuDNN's explanation.
Descriptor read_device(const Library& library, const std::filesystem::path& file);

}  // namespace arbalest::tests::cudnn
