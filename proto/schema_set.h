// The schema of job files with its comments, as a serialized google.protobuf.FileDescriptorSet. The descriptors of the
// generated code have no comments.
#pragma once

#include <string_view>

namespace arbalest::embedded {

extern const std::string_view schema_set;

}  // namespace arbalest::embedded
