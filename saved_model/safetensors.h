// The safetensors file format: eight bytes with the size of a JSON header, the header, then the tensors' bytes.
// https://github.com/huggingface/safetensors describes it. Tensors are little endian and row-major. This program writes
// float32.
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

// Returns the header's __metadata__. Throws as read_safetensors does, but reads no tensor.
std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path);

// Does the same as read_safetensors() with a file that the caller has opened. `read` must fill the next bytes of the
// file, which has `file_bytes` bytes, or throw. Errors do not name the file.
std::vector<dataflow::NamedTensor> parse_safetensors(std::uint64_t file_bytes,
                                                     const std::function<void(std::span<std::byte>)>& read);
// Passes the bytes of the file to `write`, piece by piece.
void put_safetensors(std::span<const dataflow::NamedTensor> tensors, const std::map<std::string, std::string>& metadata,
                     const std::function<void(std::span<const std::byte>)>& write);

// A tensor of a file that another program may have written.
struct StoredTensor {
  dataflow::NamedTensor tensor;  // without values if `dtype` is not a floating-point type that can be converted
  std::string dtype;             // the file's: "F32", "F16", "BF16", "I64"

  bool has_values() const noexcept { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }
};

// As read_safetensors, but accepts all types. F16 and BF16 are converted to float32, which is exact.
std::vector<StoredTensor> read_stored_tensors(const std::filesystem::path& path);

}  // namespace arbalest::jobs
