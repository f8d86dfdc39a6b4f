// Writes the model of a run to one file, for other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "options/job_options.h"

namespace arbalest::jobs {

enum class ExportFormat { kOnnx, kSafetensors };

struct ExportOptions {
  ExportFormat format = ExportFormat::kOnnx;
  std::filesystem::path output;  // replaced if it exists
  bool softmax = false;          // ONNX: a second output with probabilities
};

struct ExportReport {
  std::string sha256;  // of the file
  std::int64_t bytes = 0;
  std::int64_t tensors = 0;
  std::vector<std::string> warnings = {};  // where the job says something else than the model
};

// `model`: the run's model in safetensors format; `model_sha256`: its hash, or "" if it is not known. The file appears
// whole or not at all, and its bytes depend on the model, the job and `options` only. Throws as
// read_finite_model, read_saved_description, to_onnx, AtomicFile and open_output_file do; kUsage for `softmax` without
// ONNX.
ExportReport export_model(const JobOptions& job, const std::filesystem::path& model, const std::string& model_sha256,
                          const ExportOptions& options);

}  // namespace arbalest::jobs
