// Reads an ONNX file that is not trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "onnx/model.pb.h"

namespace arbalest::jobs {

// Newest version of the standard set of operators whose meaning is known here.
inline constexpr std::int64_t kNewestOperatorSet = 24;

// The version of the standard set of operators that the model uses.
std::int64_t standard_operator_set(const onnx::Model& model);

// Returns the model with the data of all tensors in the message. Nodes are sorted: each follows those it reads.
// Formulas that the file spells out are joined (formulas.h). Throws
// ErrorKind::kData, naming the file, if there is none; kCheckpoint if it cannot be read, is no ONNX model, has nodes
// that form a cycle, defines a value twice, or keeps data outside its folder; kInvalidJob if its operators are of a
// newer version.
onnx::Model read_onnx(const std::filesystem::path& path);

// Does what read_onnx does with bytes in memory. Errors do not name the file. External data are looked for
// from the folder of `path`, which need not be there otherwise.
onnx::Model parse_onnx(std::string_view bytes, const std::filesystem::path& path);

}  // namespace arbalest::jobs
