// Finds one feature of a tf.train.Example without parsing the others: the label of an image without the image.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "dataflow/input/formats/records/record_file.h"

namespace arbalest::tensorflow {
class Feature;
}

namespace arbalest::dataflow {

// Reads little more of the record than this feature and the names of the features before it, and does not verify the
// checksum. Returns the first feature of that name; none if the record has no such feature or its structure is visibly
// damaged. RecordFile::read tells the two cases apart.
std::optional<tensorflow::Feature> find_feature(const RecordFile& file, std::size_t record, std::string_view name);

}  // namespace arbalest::dataflow
