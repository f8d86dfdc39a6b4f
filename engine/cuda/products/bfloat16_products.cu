#include "engine/cuda/products/kernel_products.h"

namespace arbalest::engine::cuda {

const ConvolutionProducts& bfloat16_products() {
  static const KernelProducts<BFloat16, TensorCores> products;
  return products;
}

}  // namespace arbalest::engine::cuda
