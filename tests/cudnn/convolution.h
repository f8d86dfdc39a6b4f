// A convolution in the form in which cuDNN is queried.
#pragma once

#include <string>

#include "engine/base/precision.h"
#include "engine/base/shape.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/ops/window.h"

namespace arbalest::tests::cudnn {

struct Convolution {
  engine::Shape input;    // [n, c, h, w], including padding that is on one side only
  engine::Shape weights;  // [o, c / groups, kernel h, kernel w]
  engine::Shape output;   // [n, o, h', w']
  engine::Window window;  // without extra_padding
  engine::Precision precision = engine::Precision::kFloat32;
  engine::cuda::Order order = engine::cuda::Order::kChannelsLast;  // common to all three tensors

  std::int64_t groups() const { return input[1] / weights[1]; }
  bool operator==(const Convolution&) const = default;
};

enum class Pass { kForward, kWeightGradient, kInputGradient };

const char* to_string(Pass pass);
const char* to_string(engine::cuda::Order order);  // "NHWC" or "NCHW"
// "32x20x12x12 * 50x20x5x5, stride 1x1, padding 0x0"
std::string to_string(const Convolution& convolution);

}  // namespace arbalest::tests::cudnn
