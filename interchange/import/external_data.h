// Reads tensors that an ONNX file keeps in other files beside it. Neither file is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "onnx/model.pb.h"
#include "saved_model/regular_file.h"

namespace arbalest::jobs {

class ExternalData {
 public:
  // `model`: path of the ONNX file, as the user gave it.
  explicit ExternalData(const std::filesystem::path& model);

  // Moves the data of `tensor`, `bytes` bytes, into its raw_data. The file's location counts from the folder of
  // `model`, or, if nothing is there, from that of the file that `model` is a symbolic link to. It must be a regular
  // file below that folder, or beside the file that `model` stands for, after symbolic links are resolved: in the cache
  // of Hugging Face both are links to files in one folder. If the tensor names a checksum, it must be the
  // SHA-1 of the whole file (onnx.proto, external_data). Throws ErrorKind::kCheckpoint, naming the tensor.
  void load(onnx::Tensor& tensor, std::uint64_t bytes);

 private:
  void check(RegularFile& file, const std::string& location, const std::string& checksum);
  RegularFile open_file(const std::string& location) const;

  std::filesystem::path given_;  // folder
  std::filesystem::path model_;
  std::map<std::string, std::string> checksums_;  // of the files so far, by location
};

}  // namespace arbalest::jobs
