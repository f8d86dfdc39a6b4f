#include "engine/cuda/products/kernel_products.h"

namespace arbalest::engine::cuda {

const ConvolutionProducts& float32_products() {
  static const KernelProducts<float, FusedMultiplyAdd> products;
  return products;
}

}  // namespace arbalest::engine::cuda
