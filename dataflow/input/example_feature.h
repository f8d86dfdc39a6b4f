// One feature of a tf.train.Example without the others: the label of an image without the image.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "dataflow/input/record_file.h"

namespace tensorflow {
class Feature;
}

namespace arbalest::dataflow {

// Reads little more of the record than this feature and the names of those before it, and does not look at the
// checksum. The first of that name, if there are several. None if the record has no such feature or is damaged
// so that this shows; RecordFile::read tells which.
std::optional<tensorflow::Feature> find_feature(const RecordFile& file, std::size_t record, std::string_view name);

}  // namespace arbalest::dataflow
