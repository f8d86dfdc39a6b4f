// A CPU device: a set of cores, oneDNN's engine, and streams that are threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dnnl.hpp>

#include "engine/cpu/runtime/core_lending.h"
#include "engine/device.h"
#include "engine/device_options.h"

namespace arbalest::engine::cpu {

class CpuDevice final : public Device {
 public:
  CpuDevice(const DeviceSpec& spec, const DeviceOptions& options);

  const std::string& name() const noexcept override { return name_; }
  int cores() const noexcept override { return cores_; }
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_host(std::size_t bytes) override { return allocate(bytes); }
  std::size_t free_memory() const override;
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override;
  std::size_t stream_bytes(const StreamOptions&) const override { return 0; }
  std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options) override;
  Layout plain_layout(const Shape& shape, DType dtype) const override;
  Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) const override;
  void convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) override;

 private:
  std::string name_;
  std::vector<int> pinned_cores_;  // empty: unpinned
  int cores_;
  StreamObserver* observer_;
  bool lends_cores_;  // false: lending_ is not used
  CoreLending lending_;
  dnnl::engine engine_;
};

}  // namespace arbalest::engine::cpu
