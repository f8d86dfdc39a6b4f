#include "engine/cuda/device/device.h"

#include <type_traits>
#include <vector>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/convert.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/cuda/runtime/stream.h"

namespace arbalest::engine::cuda {

namespace {

constexpr int kOldestMajor = 8;  // oldest compute capability that the kernels are compiled for

}  // namespace

CudaDevice::CudaDevice(const DeviceSpec& spec, const DeviceOptions& options)
    : name_(spec.name),
      ordinal_(spec.cuda_ordinal),
      graphs_(options.graphs),
      observer_(options.observer),
      answers_(options.kernels, options.recorded_kernels, options.keeps_recorded_kernels),
      trials_(name_, ordinal_, gate_),
      questions_(ordinal_, gate_, answers_, trials_),
      chooser_(answers_, trials_) {
  const CudaDeviceInfo info = find_cuda_device(spec);
  if (info.major < kOldestMajor) {
    fail(ErrorKind::kDevice, "device '{}': {} has compute capability {}.{}; Arbalest needs {}.0 or newer", name_,
         info.name, info.major, info.minor, kOldestMajor);
  }
  make_current();
  keep_freed_memory(ordinal_);
}

void CudaDevice::make_current() const { ARBALEST_CUDA(cudaSetDevice(ordinal_)); }

Buffer CudaDevice::allocate(std::size_t bytes) {
  make_current();
  return allocate_device(bytes);
}

Buffer CudaDevice::allocate_host(std::size_t bytes) {
  make_current();
  return allocate_mapped(bytes);
}

std::size_t CudaDevice::free_memory() const {
  make_current();
  return free_device_memory(ordinal_);
}

std::unique_ptr<Stream> CudaDevice::create_stream(const StreamOptions& options) {
  trials_.end();  // operators are prepared before streams are created
  CudaStream::Options created{.name = name_ + " " + options.name,
                              .role = options.role,
                              .ordinal = ordinal_,
                              .replicas = options.replicas,
                              .graphs = graphs_,
                              .observer = observer_};
  return std::make_unique<CudaStream>(std::move(created), gate_);
}

std::size_t CudaDevice::stream_bytes(const StreamOptions& options) const {
  if (!runs_operators(options.role)) return CudaStream::bytes(/*libraries=*/false, options.replicas);
  return CudaStream::bytes(/*libraries=*/true, options.replicas) + questions_.handle_bytes();
}

std::unique_ptr<Operator> CudaDevice::prepare(const OperatorSpec& spec, const PrepareOptions& options) {
  make_current();
  const auto make = [&](const auto& kind) {
    if constexpr (std::is_same_v<decltype(kind), const Conv2dSpec&>) {
      return make_operator(kind, options, questions_, chooser_);
    } else if constexpr (std::is_same_v<decltype(kind), const DenseSpec&>) {
      return make_operator(kind, options, chooser_);
    } else {
      return make_operator(kind, options);
    }
  };
  return std::visit(make, spec);
}

Layout CudaDevice::plain_layout(const Shape& shape, DType dtype) const {
  return make_layout(shape, dtype, Order::kCanonical);
}

Layout CudaDevice::layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) const {
  return cuda::layout_of(shape, dtype, numbers);
}

void CudaDevice::convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) {
  make_current();
  std::vector<std::byte> read(source_layout.bytes()), written(target_layout.bytes());
  const auto copy = [&](void* to, const void* from, std::size_t bytes) {
    ARBALEST_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread));
    ARBALEST_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
  };
  copy(read.data(), source, read.size());
  convert_on_host(source_layout, read.data(), target_layout, written.data());
  copy(target, written.data(), written.size());
}

}  // namespace arbalest::engine::cuda
