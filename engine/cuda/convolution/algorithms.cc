#include "engine/cuda/convolution/algorithms.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

namespace arbalest::engine::cuda {

namespace {

using Kind = ConvolutionKind;

constexpr std::array kForwardNames{"IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
                                   "WINOGRAD",      "WINOGRAD_NONFUSED"};
constexpr std::array kWeightGradientNames{"ALGO_0",    "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED",
                                          "FFT_TILING"};
constexpr std::array kInputGradientNames{"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};

// The numbers of the two families of algorithms that transform the images.
struct Transforms {
  int fft;
  int winograd;
  int winograd_nonfused;
};

Transforms transforms_of(Kind kind) {
  switch (kind) {
    case Kind::kForward:
      return {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
              CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED};
    case Kind::kWeightGradient:
      return {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD,
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED};
    case Kind::kInputGradient: break;
  }
  return {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
          CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED};
}

std::int64_t longest_side(const Window& window) { return std::max(window.kernel.height, window.kernel.width); }

// float32 stays float32, and nothing becomes float16. Winograd's transforms for filters larger than 3 x 3 lose digits:
// on an H100 the relative error of a 5 x 5 convolution in float32 was 3e-4 to 9e-4.
bool is_exact_enough(const ConvolutionAlgorithm& algorithm, Kind kind, const Window& window, Precision precision) {
  if (algorithm.math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) return false;
  const Transforms transforms = transforms_of(kind);
  const bool is_winograd = algorithm.number == transforms.winograd || algorithm.number == transforms.winograd_nonfused;
  if (is_winograd && longest_side(window) > 3) return false;
  return precision != Precision::kFloat32 || algorithm.math != CUDNN_TENSOR_OP_MATH;
}

// 0 for the algorithms that are tried first. Those of equal rank keep cuDNN's order.
int rank_in_float32(int number, Kind kind, const Window& window) {
  const Transforms transforms = transforms_of(kind);
  const std::int64_t side = longest_side(window);
  if (side == 3 && number == transforms.winograd_nonfused) return 0;
  const bool favors_fft = kind == Kind::kWeightGradient ? side >= 3 : kind == Kind::kInputGradient && side > 3;
  return favors_fft && number == transforms.fft ? 1 : 2;
}

}  // namespace

std::string name_of(ConvolutionKind kind, int number) {
  std::span<const char* const> names = kForwardNames;
  if (kind == Kind::kWeightGradient) names = kWeightGradientNames;
  if (kind == Kind::kInputGradient) names = kInputGradientNames;
  const auto place = static_cast<std::size_t>(number);
  return place < names.size() ? names[place] : fmt::format("algorithm {}", number);
}

std::vector<ConvolutionAlgorithm> order_of_trial(std::vector<ConvolutionAlgorithm> listed, ConvolutionKind kind,
                                                 const Window& window, Precision precision) {
  std::erase_if(listed, [&](const auto& algorithm) { return !is_exact_enough(algorithm, kind, window, precision); });
  if (precision == Precision::kFloat32) {
    std::ranges::stable_sort(listed, {},
                             [&](const auto& algorithm) { return rank_in_float32(algorithm.number, kind, window); });
  }
  return listed;
}

}  // namespace arbalest::engine::cuda
