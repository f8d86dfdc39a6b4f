// Windows of convolutions and poolings. A length of theirs (kernel, stride, padding ...) is given once for both
// directions, or once for each.
#pragma once

#include <functional>
#include <string>

#include "arbalest/v1/model.pb.h"
#include "engine/ops/window.h"

namespace arbalest::dataflow {

// Set the lengths that are missing and have a default. The padding_mode must be set.
void fill_window(v1::Conv& conv);
void fill_window(v1::Pool& pool);

// Reports lengths that contradict each other or the padding_mode, and a missing kernel. `message`: a Conv or Pool.
// `report` gets the field at fault and a message.
void check_window(const google::protobuf::Message& message, v1::Padding::Mode mode,
                  const std::function<void(const std::string&, const std::string&)>& report);

// `message`: a Conv or Pool with its defaults.
engine::Window read_window(const google::protobuf::Message& message);

}  // namespace arbalest::dataflow
