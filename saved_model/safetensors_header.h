// Parses the JSON header of a safetensors file without trusting it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/shape.h"

namespace arbalest::jobs {

inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;  // as in the reference reader

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  engine::Shape shape;
  std::uint64_t begin = 0;  // offsets in bytes from the end of the header
  std::uint64_t end = 0;
};

// The types of tensors that a reader accepts.
enum class SafetensorsTypes {
  kFloat32,  // what this program writes
  kAll       // all types of the format
};

// Returns entries in ascending order of their bytes. `data_bytes`: size of the file behind the header. Throws
// ErrorKind::kCheckpoint, without naming the file, for a header that is not a JSON object of this form, a repeated key,
// a type that is not accepted, a size that differs from the shape's, overlapping tensors, holes, or bytes that belong
// to no tensor.
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes,
                                                       SafetensorsTypes types = SafetensorsTypes::kFloat32);

}  // namespace arbalest::jobs
