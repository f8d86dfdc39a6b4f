// Batch normalization (Ioffe and Szegedy, ICML 2015) of each channel c over its N numbers in a mini-batch:
//   y = scale[c] (x - m[c]) / sqrt(v[c] + epsilon) + shift[c]
// In training m and v are the batch's mean and (biased, / N) variance, at inference the running ones. Parameters:
// scale, shift, running mean, running variance, [c] each.
// An optional addend, a second input of the input's shape, computes with ReLU the end of a residual block in one pass:
//   output = max(0, y + addend)
// The addend's gradient is the gradient of ReLU's input. Backward then reads the output.
//
// With frozen statistics m and v are the running ones in training, too, as in torch.nn.BatchNorm2d.eval(). They then
// are constants for the gradient, and forward writes no targets.
//
// Forward does not write the running statistics, because other streams may be reading them. It writes their targets,
// the batch's mean and unbiased (/ (N - 1)) variance, into their "gradients". The update (ops/weight_update.h) then
// computes running <- running + momentum (batch - running).
#pragma once

#include <optional>

#include "engine/base/error.h"
#include "engine/base/layout.h"

namespace arbalest::engine {

struct BatchNormSpec {
  Layout input;           // [n, c] or [n, c, h, w], float32 or bfloat16, like the output. Statistics are float32
  float epsilon = 1e-5F;  // above 0
  bool relu = false;      // max(0, y) in the same pass
  std::optional<Layout> addend = {};  // of the input's shape; only with relu; any layout and type
  bool frozen_statistics = false;     // training, too, uses the running statistics

  // Whether forward measures the mini-batch.
  bool measures(bool training) const { return training && !frozen_statistics; }
};

inline constexpr std::size_t kBatchNormParameters = 4;

// N of a training step. Throws ErrorKind::kInvalidJob if it is 1, because a single number has no variance.
inline std::int64_t numbers_of_channel(const BatchNormSpec& spec) {
  const Shape& shape = spec.input.shape();
  const std::int64_t numbers = shape.elements() / shape[1];
  if (numbers < 2) {
    fail(ErrorKind::kInvalidJob,
         "batch norm has only one number of each channel to learn from; use a larger training.batch_size");
  }
  return numbers;
}

}  // namespace arbalest::engine
