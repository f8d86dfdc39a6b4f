// The safetensors file format: eight bytes with the size of a JSON header, the header, then the tensors' bytes.
// https://github.com/huggingface/safetensors describes it; tensors here are float32, little endian, row-major.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"

namespace arbalest::jobs {

// Writes the tensors in the given order, whole or not at all (AtomicFile). Returns the file's SHA-256 in hexadecimal.
// The bytes depend on the arguments only. `metadata` becomes the header's __metadata__. Throws as AtomicFile does.
std::string write_safetensors(const std::filesystem::path& path, std::span<const dataflow::NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata);

// Returns the tensors in the order of their bytes. The file is not trusted: every size is checked before memory is
// allocated for it. Throws ErrorKind::kCheckpoint, naming the file and the tensor, if the file cannot be read, is not a
// safetensors file, holds another type than F32, if its tensors overlap, leave holes or do not fill it, or if its
// SHA-256 differs from `expected_sha256` ("": not checked).
std::vector<dataflow::NamedTensor> read_safetensors(const std::filesystem::path& path,
                                                    const std::string& expected_sha256 = "");

}  // namespace arbalest::jobs
