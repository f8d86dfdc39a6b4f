// A GPU that cuDNN is asked about, described by a file of its properties.
#pragma once

#include <filesystem>

#include "tests/cudnn/library.h"

namespace arbalest::tests::cudnn {

// The finalized descriptor of the device that the JSON file describes (h100.json lists the properties that cuDNN
// needs). Throws engine::Error of kind kInvalidJob with "file:line:column: error: ..." for a file that cannot be read,
// is no JSON, lacks a property, or has one of the wrong form; and with cuDNN's words for properties that it refuses.
Descriptor read_device(const Library& library, const std::filesystem::path& file);

}  // namespace arbalest::tests::cudnn
