#include "engine/cpu/device/device.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/errors.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/cpu/runtime/threads.h"
#include "engine/cpu/winograd/weights_layout.h"
#include "engine/host/topology.h"

namespace arbalest::engine::cpu {

CpuDevice::CpuDevice(const DeviceSpec& spec, const DeviceOptions& options)
    : name_(spec.name),
      pinned_cores_(spec.cores),
      cores_(spec.cores.empty() ? host::usable_cores() : static_cast<int>(spec.cores.size())),
      observer_(options.observer),
      lends_cores_(options.lend_cores && pinned_cores_.empty()),
      engine_(dnnl::engine::kind::cpu, 0) {}

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLargePage = std::size_t{2} << 20U;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::byte* map(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Maps memory that starts at the border of a large page, if there are enough addresses to find one. Addresses around it
// are given back at once, because a memory estimate counts buffers only. Returns null if there is no memory.
std::byte* map_at_large_page(std::size_t bytes) {
  std::byte* const begin = map(bytes + kLargePage);
  if (begin == nullptr) return map(bytes);
  const std::size_t before = (kLargePage - reinterpret_cast<std::uintptr_t>(begin) % kLargePage) % kLargePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kLargePage - before);
  return begin + before;
}

// A step touches far more memory than the processor's TLB covers with small pages, so large buffers use large pages if
// the system offers them.
Buffer allocate_large(std::size_t bytes) {
  const std::size_t taken = whole_pages(bytes);
  std::byte* const data = taken + kLargePage < bytes ? nullptr : map_at_large_page(taken);
  if (data == nullptr) return {};
  madvise(data, taken, MADV_HUGEPAGE);  // a request; errors are ignored
  return {data, taken, [](void* memory, std::size_t size) noexcept { munmap(memory, size); }};
}

Buffer allocate_small(std::size_t bytes) {
  return {std::aligned_alloc(kAlignment, bytes), bytes, [](void* memory, std::size_t) noexcept { std::free(memory); }};
}

}  // namespace

Buffer CpuDevice::allocate(std::size_t bytes) {
  const std::size_t rounded = aligned(bytes);
  if (bytes == 0) return {};
  Buffer buffer;
  if (rounded >= bytes) buffer = rounded < kLargePage ? allocate_small(rounded) : allocate_large(rounded);
  if (buffer.data() == nullptr) fail(ErrorKind::kOutOfMemory, "{}: cannot allocate {} bytes", name_, bytes);
  std::memset(buffer.data(), 0, rounded);  // touches the memory now, on this thread
  return buffer;
}

std::size_t CpuDevice::free_memory() const { return host::available_memory_bytes(); }

std::unique_ptr<Stream> CpuDevice::create_stream(const StreamOptions& options) {
  CpuStream::Options stream{name_ + " " + options.name, options.role, options.threads, {}, observer_};
  // The host waits for each result of inference, so no other thread has to be woken.
  stream.on_caller = options.role == StreamRole::kInference && pinned_cores_.empty();
  if (lends_cores_ && options.threads == 1 && !stream.on_caller) stream.lending = &lending_;
  stream.lends = runs_operators(options.role);
  for (int i = 0; !pinned_cores_.empty() && runs_operators(options.role) && i < options.threads; ++i) {
    const auto core = static_cast<std::size_t>(options.first_core + i) % pinned_cores_.size();
    stream.pinned_cores.push_back(pinned_cores_[core]);
  }
  if (!runs_operators(options.role)) stream.pinned_cores = pinned_cores_;
  return std::make_unique<CpuStream>(std::move(stream));
}

std::unique_ptr<Operator> CpuDevice::prepare(const OperatorSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(options.precision !=
                 Precision::kTensorFloat32);  // refused by precision_problem in engine/backends/devices.h
  const ThreadCountScope scope(options.threads);
  return cpu::prepare(spec, options, engine_);
}

Layout CpuDevice::plain_layout(const Shape& shape, DType dtype) const {
  return translate_errors([&] { return make_layout(plain_descriptor(shape, dtype)); });
}

Layout CpuDevice::layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) const {
  return translate_errors([&] { return cpu::layout_of(shape, dtype, numbers); });
}

void CpuDevice::convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) {
  // Dense weights are [units, features] on this device, as in files.
  ARBALEST_CHECK(source_layout.shape() == target_layout.shape());
  if (is_winograd_weights(target_layout)) {
    const Layout plain = plain_layout(source_layout.shape(), DType::kFloat32);
    ARBALEST_CHECK(source_layout == plain);  // weights come from files
    transform_winograd_weights(plain.shape(), static_cast<const float*>(source), static_cast<float*>(target));
    return;
  }
  translate_errors([&] {
    dnnl::memory::desc from = descriptor(source_layout);
    dnnl::memory::desc to = descriptor(target_layout);
    // If oneDNN splits an axis of one tensor, the other's canonical order can be split in the same way.
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
