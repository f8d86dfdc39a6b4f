// A table of cuDNN's answers for every convolution of the zoo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/cudnn/question.h"

namespace arbalest::tests::cudnn {

// A convolution with a larger workspace is refused (kLargestWorkspace in engine/cuda/convolution/conv2d.cc).
constexpr std::int64_t kAllowedWorkspaceBytes = std::int64_t{256} << 20U;

struct Row {
  std::string model;
  Convolution convolution;
  Pass pass = Pass::kForward;
  bool float_gradient = false;   // the gradient of BF16 weights is written as FP32
  bool used = false;             // training uses this convolution
  std::optional<Answer> answer;  // nullopt if cuDNN rejects the query
};

// Queries the forward pass and both gradients in FP32, TF32 and BF16, in the order of the CUDA device's tensors. Also
// queries two alternatives: FP32 in the other order, and BF16 with weight gradients in FP32.
std::vector<Row> ask_about_zoo(const Library& library, const Descriptor& device);

// "lenet {}, 32 examples: 32x1x28x28 * ...: weight gradient in BF16, NHWC"
std::string to_string(const Row& row);

// Returns tab-separated lines. The first line names cuDNN's version and the device, the second has the column names.
std::string to_text(const std::vector<Row>& rows, const std::string& title);

// "# cuDNN 9.19.0, device h100.json"
std::string title_of(const Library& library, const std::string& device_file);

}  // namespace arbalest::tests::cudnn
