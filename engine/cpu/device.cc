#include "engine/cpu/device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "engine/alignment.h"
#include "engine/cpu/errors.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/stream.h"
#include "engine/cpu/threads.h"
#include "engine/error.h"
#include "engine/host/topology.h"

namespace arbalest::engine::cpu {

CpuDevice::CpuDevice(const DeviceSpec& spec, const DeviceOptions& options)
    : name_(spec.name),
      pinned_cores_(spec.cores),
      cores_(core_count(spec)),
      observer_(options.observer),
      lends_cores_(options.lend_cores && pinned_cores_.empty()),
      engine_(dnnl::engine::kind::cpu, 0) {}

namespace {

// A step passes over far more memory than the processor keeps the addresses of small pages for, so what is large lies
// in large pages where the system has them for those who ask. Null where memory is out.
void* allocate_pages(std::size_t bytes) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20U;
  void* data = nullptr;
  if (posix_memalign(&data, bytes < kLargePage ? kAlignment : kLargePage, bytes) != 0) return nullptr;
  if (bytes >= kLargePage) madvise(data, bytes, MADV_HUGEPAGE);  // a request; all is well without it
  return data;
}

}  // namespace

Buffer CpuDevice::allocate(std::size_t bytes) {
  const std::size_t rounded = aligned(bytes);
  if (rounded == 0) return {};
  void* data = rounded < bytes ? nullptr : allocate_pages(rounded);
  if (data == nullptr) fail(ErrorKind::kOutOfMemory, "{}: cannot allocate {} bytes", name_, bytes);
  std::memset(data, 0, rounded);
  return {data, bytes, [](void* memory, std::size_t) noexcept { std::free(memory); }};
}

std::size_t CpuDevice::free_memory() const { return host::available_memory_bytes(); }

std::unique_ptr<Stream> CpuDevice::create_stream(const StreamOptions& options) {
  CpuStream::Options stream{name_ + " " + options.name, options.threads, {}, observer_};
  if (lends_cores_ && options.threads == 1) stream.lending = &lending_;
  stream.lends = !options.floating;
  for (int i = 0; !pinned_cores_.empty() && !options.floating && i < options.threads; ++i) {
    const auto core = static_cast<std::size_t>(options.first_core + i) % pinned_cores_.size();
    stream.pinned_cores.push_back(pinned_cores_[core]);
  }
  if (options.floating) stream.pinned_cores = pinned_cores_;
  return std::make_unique<CpuStream>(std::move(stream));
}

std::unique_ptr<Operator> CpuDevice::prepare(const OperatorSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(options.precision != Precision::kTensorFloat32);  // precision_problem in engine/devices.h
  const ThreadCountScope scope(options.threads);
  return cpu::prepare(spec, options, engine_);
}

Layout CpuDevice::plain_layout(const Shape& shape, DType dtype) const {
  return translate_errors([&] { return make_layout(plain_descriptor(shape, dtype)); });
}

void CpuDevice::convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) {
  // Dense weights are [units, features] on this device, as they are in files.
  ARBALEST_CHECK(source_layout.shape() == target_layout.shape());
  translate_errors([&] {
    dnnl::memory::desc from = descriptor(source_layout);
    dnnl::memory::desc to = descriptor(target_layout);
    // Of a tensor that oneDNN cuts an axis of, the canonical order can be cut alike.
    if (from.dims().size() < to.dims().size()) from = from.reshape(to.dims());
    if (to.dims().size() < from.dims().size()) to = to.reshape(from.dims());
    dnnl::memory source_memory(from, engine_, const_cast<void*>(source));  // oneDNN only reads it
    dnnl::memory target_memory(to, engine_, target);
    std::memset(target, 0, target_layout.bytes());
    dnnl::stream stream(engine_);
    dnnl::reorder(source_memory, target_memory).execute(stream, source_memory, target_memory);
    stream.wait();
  });
}

}  // namespace arbalest::engine::cpu
