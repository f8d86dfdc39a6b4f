// The safetensors file format: eight bytes with the size of a JSON header, the header, then the tensors' bytes.
// https://github.com/huggingface/safetensors describes it; tensors here are float32, little endian, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
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

// Does the same with a file that the caller has opened. `read` must fill the next bytes of the file, which has
// `file_bytes` bytes, or throw. Errors do not name the file.
std::vector<dataflow::NamedTensor> parse_safetensors(std::uint64_t file_bytes,
                                                     const std::function<void(std::span<std::byte>)>& read);
// Passes the bytes of the file to `write`, piece by piece.
void put_safetensors(std::span<const dataflow::NamedTensor> tensors, const std::map<std::string, std::string>& metadata,
                     const std::function<void(std::span<const std::byte>)>& write);

}  // namespace arbalest::jobs
