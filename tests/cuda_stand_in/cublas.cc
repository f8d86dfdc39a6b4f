// cuBLAS: handles with a stream and the user's workspace, and matrix products in double precision.
#include <cublas_v2.h>

#include <cstring>
#include <set>
#include <string>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/memory.h"
#include "tests/cuda_stand_in/numbers.h"

struct cublasContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;  // the user's
  std::size_t workspace_bytes = 0;
  int math = CUBLAS_DEFAULT_MATH;
  std::set<std::string> warm;  // kinds of calls that this handle has already made (call.h)
};

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr const char* kKind = "cuBLAS handle";
constexpr std::size_t kHandleBytes = std::size_t{1} << 20U;  // of the device's memory

template <typename Body>
cublasStatus_t cublas_call(const char* function, InCapture in_capture, const Body& body) {
  return library_call(function, in_capture, CUBLAS_STATUS_EXECUTION_FAILED, body);
}

std::size_t size(int extent) { return static_cast<std::size_t>(extent); }

// A column-major matrix in memory, and whether its transpose is meant.
struct Matrix {
  Number number;
  const void* data;
  std::size_t leading;
  bool transposed;

  double at(std::size_t row, std::size_t column) const {
    return read(number, data, transposed ? row * leading + column : column * leading + row);
  }
};

struct Product {
  std::size_t m;
  std::size_t n;
  std::size_t k;
  Scaling scaling;
  Matrix a;
  Matrix b;
  Number number;  // of c
  void* c;
  std::size_t leading;  // of c
};

void multiply(const Product& p) {
  std::vector<double> a(p.m * p.k);  // column by column
  for (std::size_t inner = 0; inner < p.k; ++inner) {
    for (std::size_t row = 0; row < p.m; ++row) a[inner * p.m + row] = p.a.at(row, inner);
  }
  std::vector<double> sums(p.m);
  for (std::size_t column = 0; column < p.n; ++column) {
    sums.assign(p.m, 0.0);
    for (std::size_t inner = 0; inner < p.k; ++inner) {
      const double factor = p.b.at(inner, column);
      for (std::size_t row = 0; row < p.m; ++row) sums[row] += a[inner * p.m + row] * factor;
    }
    for (std::size_t row = 0; row < p.m; ++row) {
      write(p.number, p.scaling, sums[row], p.c, column * p.leading + row);
    }
  }
}

std::size_t bytes(Number number, std::size_t leading, std::size_t rows, std::size_t columns) {
  return size_of(number) * (leading * (columns - 1) + rows);
}

// The types in cuBLAS's table (cublasGemmEx), limited to those that Arbalest uses.
bool is_supported(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute) {
  if (a != b) return false;
  const bool float32 = a == CUDA_R_32F && c == CUDA_R_32F;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return float32;
  if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC) return false;
  return float32 || (a == CUDA_R_16BF && (c == CUDA_R_16BF || c == CUDA_R_32F));
}

Number number_of(cudaDataType type, cublasComputeType_t compute) {
  if (type == CUDA_R_16BF) return Number::kBFloat16;
  return compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? Number::kTensorFloat32 : Number::kFloat32;
}

cublasStatus_t submit(cublasHandle_t handle, const Product& p) {
  constexpr const char* kName = "cublasGemmEx";
  if (handle->device != this_thread().device) {
    violation(fmt::format("{}: a handle of device {} while device {} is current", kName, handle->device,
                          this_thread().device));
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (handle->workspace == nullptr) {
    violation("cublasGemmEx: without a workspace of the user's (cublasSetStream takes it away), results may vary");
  }
  const auto rows = [](const Matrix& matrix, std::size_t height, std::size_t width) {
    return matrix.transposed ? bytes(matrix.number, matrix.leading, width, height)
                             : bytes(matrix.number, matrix.leading, height, width);
  };
  const bool inside = check_device_range(p.a.data, rows(p.a, p.m, p.k), handle->device, kName) &&
                      check_device_range(p.b.data, rows(p.b, p.k, p.n), handle->device, kName) &&
                      check_device_range(p.c, bytes(p.number, p.leading, p.m, p.n), handle->device, kName);
  if (!inside) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<const void*> uses{p.a.data, p.b.data, p.c, handle->workspace};
  auto run = [p, workspace = handle->workspace, workspace_bytes = handle->workspace_bytes] {
    constexpr std::size_t kScribble = 4096;  // enough to show that two streams share it
    if (workspace != nullptr) std::memset(workspace, 0xFF, std::min(workspace_bytes, kScribble));
    multiply(p);
  };
  CUstream_st* stream = find_stream(handle->stream, kName);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const std::string kind = fmt::format("{} {} {} {} {}", p.m, p.n, p.k, p.a.transposed, p.b.transposed);
  const cudaError_t result =
      enqueue_of_library(*stream, make_work(kName, std::move(uses), std::move(run)), kName, kind, handle->warm);
  return result == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

extern "C" {

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "the operation completed successfully";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    default: return "an internal operation failed";
  }
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return cublas_call("cublasCreate", InCapture::kIllegal, [&] {
    if (!take_elsewhere(this_thread().device, kHandleBytes)) {
      return random_below(2) == 0 ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *handle = make_handle<cublasContext>(kKind);
    (*handle)->device = this_thread().device;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  return cublas_call("cublasDestroy", InCapture::kIllegal, [&] {
    if (!end_handle(handle, kKind, "cublasDestroy")) return CUBLAS_STATUS_NOT_INITIALIZED;
    give_back_elsewhere(handle->device, kHandleBytes);
    return spoils_captures_of_others("cublasDestroy") ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
  });
}

// Also resets the workspace to the library's own (cuBLAS, "cublasSetStream").
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return cublas_call("cublasSetStream", InCapture::kLegal, [&] {
    const CUstream_st* found = find_stream(stream, "cublasSetStream");
    if (found == nullptr || !is_alive(handle, kKind, "cublasSetStream")) return CUBLAS_STATUS_INVALID_VALUE;
    if (found->device != handle->device) {
      violation("cublasSetStream: the stream and the handle are of two devices");
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    handle->stream = stream;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return cublas_call("cublasSetWorkspace", InCapture::kLegal, [&] {
    if (!is_alive(handle, kKind, "cublasSetWorkspace")) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!check_device_range(workspace, bytes, handle->device, "cublasSetWorkspace")) return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return cublas_call("cublasSetMathMode", InCapture::kLegal, [&] {
    if (!is_alive(handle, kKind, "cublasSetMathMode")) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int a_leading,
                            const void* b, cudaDataType b_type, int b_leading, const void* beta, void* c,
                            cudaDataType c_type, int c_leading, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return cublas_call("cublasGemmEx", InCapture::kLegal, [&] {
    if (!is_alive(handle, kKind, "cublasGemmEx")) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_supported(a_type, b_type, c_type, compute)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (a_type == CUDA_R_16BF && (handle->math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == 0) {
      violation("cublasGemmEx: partial sums of bfloat16 products may be rounded (cublasSetMathMode forbids it)");
    }
    const int a_rows = transpose_a == CUBLAS_OP_N ? m : k;
    const int b_rows = transpose_b == CUBLAS_OP_N ? k : n;
    const bool possible = m > 0 && n > 0 && k > 0 && a_leading >= a_rows && b_leading >= b_rows && c_leading >= m;
    if (!possible) return CUBLAS_STATUS_INVALID_VALUE;
    return submit(handle, {size(m),
                           size(n),
                           size(k),
                           {*static_cast<const float*>(alpha), *static_cast<const float*>(beta)},
                           {number_of(a_type, compute), a, size(a_leading), transpose_a != CUBLAS_OP_N},
                           {number_of(b_type, compute), b, size(b_leading), transpose_b != CUBLAS_OP_N},
                           number_of(c_type, compute),
                           c,
                           size(c_leading)});
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
