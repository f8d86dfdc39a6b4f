// Reads tensors that an ONNX file keeps in other files beside it. Neither file is trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "onnx/model.pb.h"

namespace arbalest::jobs {

class ExternalData {
 public:
  // `directory`: that of the ONNX file. Throws ErrorKind::kCheckpoint if it cannot be opened.
  explicit ExternalData(const std::filesystem::path& directory);
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  // Moves the data of `tensor`, `bytes` bytes, into its raw_data. The file must be a regular file in or below the
  // directory, without symbolic links on the way, and have no other name. Throws ErrorKind::kCheckpoint, naming the
  // tensor.
  void load(onnx::Tensor& tensor, std::uint64_t bytes) const;

 private:
  int directory_ = -1;
};

}  // namespace arbalest::jobs
