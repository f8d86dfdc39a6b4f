// What a file tells about batch norm that its exporter has changed.
#pragma once

#include <string>
#include <vector>

#include "interchange/import/graph/layer_list.h"
#include "onnx/model.pb.h"

namespace arbalest::jobs {

// Returns a warning if the file's exporter has folded batch norm into other layers, "" if nothing speaks for that. The
// evidence is what exporters record and how they name the folded weights. Where a file has neither, the layers must
// look like a network that is trained with batch norm only: a deep one, with sums or with a filter for each channel.
// `layers`: those that the model has become. SqueezeNet, VGG and AlexNet, which have no batch norm, get no warning.
std::string folded_norms_warning(const onnx::Model& model, const std::vector<ImportedLayer>& layers);

// The warning for a file that scales and shifts channels by constants, as what is left of batch norm does.
std::string scaled_channels_warning();

// Returns a warning if the running statistics in the file are not those of the user's model; "" otherwise.
std::string moved_statistics_warning(const onnx::Model& model);

}  // namespace arbalest::jobs
