// Tests the stand-in's cuDNN, cuBLAS and NCCL.
#include <cublas_v2.h>
#include <cudnn.h>

#include <cstddef>
#include <numeric>

#include "tests/cuda/stand_in_rig.h"

namespace arbalest::tests {
namespace {

constexpr float kOne = 1;
constexpr float kZero = 0;

// Small integers, for which sums are exact.
std::vector<float> numbers(std::size_t count, std::size_t factor) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * factor % 11) - 5;
  return values;
}

double product(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// 2 images of 3 channels and 5x4 pixels, 4 filters of 3x2, padding 1x0, stride 2x1. The output is 2 x 4 x 3 x 3.
struct Convolution {
  explicit Convolution(cudnnTensorFormat_t format) {
    REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetStream(handle, cudaStreamPerThread) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateTensorDescriptor(&input) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetTensor4dDescriptor(input, format, CUDNN_DATA_FLOAT, 2, 3, 5, 4) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateTensorDescriptor(&output) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetTensor4dDescriptor(output, format, CUDNN_DATA_FLOAT, 2, 4, 3, 3) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateFilterDescriptor(&weights) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetFilter4dDescriptor(weights, CUDNN_DATA_FLOAT, format, 4, 3, 3, 2) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnCreateConvolutionDescriptor(&convolution) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetConvolution2dDescriptor(convolution, 1, 0, 2, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT) ==
            CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
  }

  static constexpr std::size_t kInput = 120;
  static constexpr std::size_t kWeights = 72;
  static constexpr std::size_t kOutput = 72;
  static constexpr std::size_t kWorkspace = 4096;  // includes copies of the tensors
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t input = nullptr;
  cudnnTensorDescriptor_t output = nullptr;
  cudnnFilterDescriptor_t weights = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
};

struct Convolved {
  std::vector<float> output;
  std::vector<float> input_gradient;
  std::vector<float> weights_gradient;
};

Convolved convolve(const Convolution& c, const std::vector<float>& x, const std::vector<float>& w,
                   const std::vector<float>& dy) {
  float* in = allocate<float>(x.size());
  float* filters = allocate<float>(w.size());
  float* out = allocate<float>(dy.size());
  void* workspace = allocate<float>(c.kWorkspace);
  upload(in, x);
  upload(filters, w);
  REQUIRE(cudnnConvolutionForward(c.handle, &kOne, c.input, in, c.weights, filters, c.convolution,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace, c.kWorkspace, &kZero,
                                  c.output, out) == CUDNN_STATUS_SUCCESS);
  Convolved result;
  result.output = download(out, dy.size());
  upload(out, dy);
  float* in_gradient = allocate<float>(x.size());
  REQUIRE(cudnnConvolutionBackwardData(c.handle, &kOne, c.weights, filters, c.output, out, c.convolution,
                                       CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, workspace, c.kWorkspace, &kZero, c.input,
                                       in_gradient) == CUDNN_STATUS_SUCCESS);
  result.input_gradient = download(in_gradient, x.size());
  REQUIRE(cudnnConvolutionBackwardFilter(c.handle, &kOne, c.input, in, c.output, out, c.convolution,
                                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace, c.kWorkspace, &kZero,
                                         c.weights, filters) == CUDNN_STATUS_SUCCESS);
  result.weights_gradient = download(filters, w.size());
  return result;
}

struct Gemm {
  cublasOperation_t a;
  cublasOperation_t b;
};

}  // namespace

TEST_CASE("stand-in: convolutions and their gradients agree with each other and with a hand-computed sum") {
  for (const cudnnTensorFormat_t format : {CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NCHW}) {
    cuda_stand_in::reset();
    const Convolution c(format);
    const std::vector<float> x = numbers(c.kInput, 7);
    const std::vector<float> w = numbers(c.kWeights, 5);
    const std::vector<float> dy = numbers(c.kOutput, 3);
    const Convolved result = convolve(c, x, w, dy);
    // All three are derivatives of <y(x, w), dy>, which is linear in x and in w.
    CHECK(product(result.output, dy) == product(result.input_gradient, x));
    CHECK(product(result.output, dy) == product(result.weights_gradient, w));
    // Image 1, filter 2, row 1, column 1: input rows 1..3, columns 1..2.
    const bool last = format == CUDNN_TENSOR_NHWC;
    double sum = 0;
    for (std::size_t ch = 0; ch < 3; ++ch) {
      for (std::size_t ky = 0; ky < 3; ++ky) {
        for (std::size_t kx = 0; kx < 2; ++kx) {
          const std::size_t pixel = (1 + ky) * 4 + 1 + kx;
          const float value = last ? x[(20 + pixel) * 3 + ch] : x[(3 + ch) * 20 + pixel];
          const float weight = last ? w[((2 * 3 + ky) * 2 + kx) * 3 + ch] : w[((2 * 3 + ch) * 3 + ky) * 2 + kx];
          sum += value * weight;
        }
      }
    }
    CHECK(result.output[last ? (9 + 4) * 4 + 2 : (4 + 2) * 9 + 4] == sum);
    CHECK(violations().empty());
  }
}

TEST_CASE("stand-in: convolutions that are not repeatable or not precise enough are violations") {
  cuda_stand_in::reset();
  const Convolution c(CUDNN_TENSOR_NCHW);
  float* data = allocate<float>(c.kInput);
  CHECK(cudnnConvolutionBackwardFilter(c.handle, &kOne, c.input, data, c.output, data, c.convolution,
                                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, nullptr, 0, &kZero, c.weights,
                                       data) == CUDNN_STATUS_SUCCESS);
  CHECK_THAT(violations(), ContainsSubstring("cudnnConvolutionBackwardFilter: an algorithm whose results vary"));
  void* workspace = allocate<std::byte>(c.kWorkspace);
  const auto convolve = [&](cudnnConvolutionFwdAlgo_t algorithm, std::size_t bytes) {
    return cudnnConvolutionForward(c.handle, &kOne, c.input, data, c.weights, data, c.convolution, algorithm, workspace,
                                   bytes, &kZero, c.output, data);
  };
  REQUIRE(cudnnSetConvolutionMathType(c.convolution, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) == CUDNN_STATUS_SUCCESS);
  CHECK(convolve(CUDNN_CONVOLUTION_FWD_ALGO_GEMM, c.kWorkspace) == CUDNN_STATUS_SUCCESS);
  CHECK_THAT(violations(), ContainsSubstring("cudnnConvolutionForward: with the precision of float16"));
  REQUIRE(cudnnSetConvolutionMathType(c.convolution, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
  CHECK(convolve(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 0) == CUDNN_STATUS_BAD_PARAM);  // no workspace
}

TEST_CASE("stand-in: an algorithm runs only with the math type with which it was listed") {
  cuda_stand_in::reset();
  const Convolution c(CUDNN_TENSOR_NCHW);
  float* data = allocate<float>(c.kInput);
  void* workspace = allocate<std::byte>(c.kWorkspace);
  const auto convolve = [&](cudnnConvolutionFwdAlgo_t algorithm, cudnnMathType_t math) {
    REQUIRE(cudnnSetConvolutionMathType(c.convolution, math) == CUDNN_STATUS_SUCCESS);
    return cudnnConvolutionForward(c.handle, &kOne, c.input, data, c.weights, data, c.convolution, algorithm, workspace,
                                   c.kWorkspace, &kZero, c.output, data);
  };
  CHECK(convolve(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_TENSOR_OP_MATH) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(convolve(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
  CHECK(convolve(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_TENSOR_OP_MATH) == CUDNN_STATUS_SUCCESS);
  CHECK(convolve(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_DEFAULT_MATH) == CUDNN_STATUS_SUCCESS);
  CHECK(violations().empty());
}

TEST_CASE("stand-in: without tensor cores, channels-last tensors are transposed in the workspace") {
  for (const cudnnTensorFormat_t format : {CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NCHW}) {
    cuda_stand_in::reset();
    const Convolution c(format);
    std::size_t bytes = 0;
    REQUIRE(cudnnGetConvolutionForwardWorkspaceSize(c.handle, c.input, c.weights, c.convolution, c.output,
                                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                                    &bytes) == CUDNN_STATUS_SUCCESS);
    const std::size_t copied = (c.kInput + c.kWeights + c.kOutput) * sizeof(float);
    CHECK(bytes == (format == CUDNN_TENSOR_NHWC ? copied : 0));
  }
}

TEST_CASE("stand-in: matrix products of all transpositions") {
  for (const Gemm gemm : {Gemm{CUBLAS_OP_N, CUBLAS_OP_N}, Gemm{CUBLAS_OP_T, CUBLAS_OP_N},
                          Gemm{CUBLAS_OP_N, CUBLAS_OP_T}, Gemm{CUBLAS_OP_T, CUBLAS_OP_T}}) {
    cuda_stand_in::reset();
    constexpr int kRows = 3, kColumns = 4, kInner = 5;
    const std::vector<float> a = numbers(kRows * kInner, 7);
    const std::vector<float> b = numbers(kInner * kColumns, 5);
    const std::vector<float> before = numbers(kRows * kColumns, 3);
    float* device_a = allocate<float>(a.size());
    float* device_b = allocate<float>(b.size());
    float* device_c = allocate<float>(before.size());
    upload(device_a, a);
    upload(device_b, b);
    upload(device_c, before);
    cublasHandle_t handle = nullptr;
    REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasSetStream(handle, cudaStreamPerThread) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasSetWorkspace(handle, allocate<float>(256), 1024) == CUBLAS_STATUS_SUCCESS);
    const float alpha = 2;
    const float beta = -1;
    const bool a_plain = gemm.a == CUBLAS_OP_N;
    const bool b_plain = gemm.b == CUBLAS_OP_N;
    REQUIRE(cublasGemmEx(handle, gemm.a, gemm.b, kRows, kColumns, kInner, &alpha, device_a, CUDA_R_32F,
                         a_plain ? kRows : kInner, device_b, CUDA_R_32F, b_plain ? kInner : kColumns, &beta, device_c,
                         CUDA_R_32F, kRows, CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    const std::vector<float> found = download(device_c, before.size());
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        float sum = 0;
        for (int k = 0; k < kInner; ++k) {
          const int a_place = a_plain ? k * kRows + row : row * kInner + k;
          const int b_place = b_plain ? column * kInner + k : k * kColumns + column;
          sum += a[static_cast<std::size_t>(a_place)] * b[static_cast<std::size_t>(b_place)];
        }
        const auto place = static_cast<std::size_t>(column * kRows + row);
        CHECK(found[place] == 2 * sum - before[place]);
      }
    }
    CHECK(violations().empty());
    REQUIRE(cublasSetStream(handle, cudaStreamPerThread) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, device_a, CUDA_R_32F, 1, device_b,
                         CUDA_R_32F, 1, &beta, device_c, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F_FAST_TF32,
                         CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    CHECK_THAT(violations(), ContainsSubstring("without a workspace of the user's"));
  }
}

TEST_CASE("stand-in: numbers are read and written in the requested type and precision") {
  cuda_stand_in::reset();
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetStream(handle, cudaStreamPerThread) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetWorkspace(handle, allocate<float>(256), 1024) == CUBLAS_STATUS_SUCCESS);
  float* a = allocate<float>(1);
  float* b = allocate<float>(1);
  float* c = allocate<float>(1);
  const auto multiply = [&](cudaDataType in, cudaDataType out, cublasComputeType_t compute) {
    return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &kOne, a, in, 1, b, in, 1, &kZero, c, out, 1,
                        compute, CUBLAS_GEMM_DEFAULT);
  };
  const auto upload_bits = [](float* to, std::uint32_t bits) {
    upload(reinterpret_cast<std::uint32_t*>(to), std::vector<std::uint32_t>{bits});
  };
  const float fine = 1.0F + 0x1p-11F + 0x1p-20F;  // above the midpoint of two numbers with 10 fractional bits
  upload(a, {fine});
  upload(b, {1.0F});
  REQUIRE(multiply(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC) == CUBLAS_STATUS_SUCCESS);
  CHECK(download(c, 1)[0] == fine);
  REQUIRE(multiply(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32) == CUBLAS_STATUS_SUCCESS);
  CHECK(download(c, 1)[0] == 1.0F + 0x1p-10F);
  CHECK(violations().empty());

  upload_bits(a, 0x3F81);  // 1 + 2^-7
  upload_bits(b, 0x3F81);
  REQUIRE(multiply(CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(download(c, 1)[0] == 1.0F + 0x1p-6F + 0x1p-14F);
  CHECK_THAT(violations(), ContainsSubstring("partial sums of bfloat16 products may be rounded"));
  REQUIRE(multiply(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(download(reinterpret_cast<std::uint16_t*>(c), 1)[0] == 0x3F82);
  CHECK(multiply(CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(multiply(CUDA_R_32F, CUDA_R_16BF, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("stand-in: a convolution's tensors have one type, and gradients of bfloat16 need tensor cores") {
  cuda_stand_in::reset();
  const Convolution c(CUDNN_TENSOR_NHWC);
  float* data = allocate<float>(c.kInput);
  void* workspace = allocate<std::byte>(c.kWorkspace);
  const auto convolve = [&] {
    return cudnnConvolutionForward(c.handle, &kOne, c.input, data, c.weights, data, c.convolution,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace, c.kWorkspace, &kZero,
                                   c.output, data);
  };
  const auto weight_gradient_bytes = [&](std::size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(c.handle, c.input, c.output, c.convolution, c.weights,
                                                          CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, bytes);
  };
  REQUIRE(cudnnSetConvolutionMathType(c.convolution, CUDNN_DEFAULT_MATH) == CUDNN_STATUS_SUCCESS);
  const auto describe = [&](cudnnDataType_t input, cudnnDataType_t weights, cudnnDataType_t output) {
    REQUIRE(cudnnSetTensor4dDescriptor(c.input, CUDNN_TENSOR_NHWC, input, 2, 3, 5, 4) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetTensor4dDescriptor(c.output, CUDNN_TENSOR_NHWC, output, 2, 4, 3, 3) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetFilter4dDescriptor(c.weights, weights, CUDNN_TENSOR_NHWC, 4, 3, 3, 2) == CUDNN_STATUS_SUCCESS);
  };
  describe(CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT);
  CHECK(convolve() == CUDNN_STATUS_NOT_SUPPORTED);
  describe(CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT);
  CHECK(convolve() == CUDNN_STATUS_NOT_SUPPORTED);
  describe(CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16);
  CHECK(convolve() == CUDNN_STATUS_SUCCESS);
  std::size_t bytes = 0;
  CHECK(weight_gradient_bytes(&bytes) == CUDNN_STATUS_SUCCESS);
  CHECK(bytes > 128);  // channels are padded
  REQUIRE(cudnnSetConvolutionMathType(c.convolution, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
  CHECK(weight_gradient_bytes(&bytes) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(violations().empty());
}

TEST_CASE("stand-in: libraries use the stream of their handle, also in captures") {
  cuda_stand_in::reset({.devices = 2});
  const Convolution c(CUDNN_TENSOR_NCHW);
  float* data = allocate<float>(c.kInput);
  const cudaStream_t stream = make_stream();
  REQUIRE(cudnnSetStream(c.handle, stream) == CUDNN_STATUS_SUCCESS);
  const auto convolve = [&] {
    return cudnnConvolutionForward(c.handle, &kOne, c.input, data, c.weights, data, c.convolution,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &kZero, c.output, data);
  };
  cudaGraph_t cold = nullptr;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(convolve() == CUDNN_STATUS_EXECUTION_FAILED_CUDART);
  CHECK_THAT(violations(), ContainsSubstring("cudnnConvolutionForward: in a capture, the first of its kind"));
  CHECK(cudaStreamEndCapture(stream, &cold) == cudaErrorStreamCaptureInvalidated);
  CHECK(convolve() == CUDNN_STATUS_SUCCESS);
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const std::uint64_t before = cuda_stand_in::enqueued_works();
  CHECK(convolve() == CUDNN_STATUS_SUCCESS);
  CHECK(cuda_stand_in::enqueued_works() == before + 1);
  cudnnHandle_t late = nullptr;
  CHECK(cudnnCreate(&late) == CUDNN_STATUS_EXECUTION_FAILED_CUDART);
  CHECK_THAT(violations(), ContainsSubstring("cudnnCreate: called by a thread that is capturing a stream"));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  must(cudaSetDevice(1));
  CHECK(convolve() == CUDNN_STATUS_EXECUTION_FAILED_CUDART);
  CHECK(cudnnSetStream(c.handle, make_stream()) == CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH);
}

TEST_CASE("stand-in: handles and graphs take memory outside the pool, and fail without it") {
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  cuda_stand_in::reset({.memory = 8 * kMiB});
  cudaMemPool_t pool = nullptr;
  must(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t threshold = UINT64_MAX;
  must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  void* data = nullptr;
  must(cudaMallocAsync(&data, 7 * kMiB, cudaStreamPerThread));
  must(cudaFree(data));
  std::size_t free = 0;
  std::size_t total = 0;
  must(cudaMemGetInfo(&free, &total));
  CHECK(free == kMiB);  // the pool has kept the rest
  cudnnHandle_t cudnn = nullptr;
  CHECK(cudnnCreate(&cudnn) != CUDNN_STATUS_SUCCESS);
  must(cudaMemPoolTrimTo(pool, 0));
  CHECK(cudnnCreate(&cudnn) == CUDNN_STATUS_SUCCESS);
  must(cudaMallocAsync(&data, 6 * kMiB, cudaStreamPerThread));
  cublasHandle_t cublas = nullptr;
  CHECK(cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS);
  const cudaStream_t stream = make_stream();
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaErrorMemoryAllocation);
  REQUIRE(cudnnDestroy(cudnn) == CUDNN_STATUS_SUCCESS);
  must(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cublasCreate(&cublas) == CUBLAS_STATUS_SUCCESS);
}

}  // namespace arbalest::tests
