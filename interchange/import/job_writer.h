// Imports an ONNX model as a job with weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace arbalest::jobs {

struct ImportOptions {
  std::filesystem::path output;  // directory to create; it may exist if it is empty
  std::string job;               // a job file whose other fields than the model the new job gets; "": usual ones
};

struct ImportReport {
  std::filesystem::path job;    // the new job file
  std::int64_t layers = 0;      // without the loss
  std::int64_t parameters = 0;  // running statistics included
  std::vector<std::string> notes;
};

// Reads the ONNX model at `path`. Writes job.txtpb, which lists the layers and starts from the weights,
// model.safetensors, and summary.json, which holds the weights' SHA-256. So `arbalest train`, `evaluate` and `export`
// read the directory. Throws as read_onnx and import_onnx do; ErrorKind::kUsage if the directory cannot be made or is
// not empty, kInvalidJob if the model does not fit `options.job`, and as fail_write does. Then nothing is left behind.
ImportReport import_model(const std::filesystem::path& path, const ImportOptions& options);

}  // namespace arbalest::jobs
