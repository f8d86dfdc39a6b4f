#include "engine/cuda/products/kernel_products.h"

namespace arbalest::engine::cuda {

const ConvolutionProducts& tensor_float32_products() {
  static const KernelProducts<float, TensorCores> products;
  return products;
}

}  // namespace arbalest::engine::cuda
