// A device that passes every call on to another device. Tests derive from it to record or change some calls.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/device.h"

namespace arbalest::tests {

class ForwardingDevice : public engine::Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<engine::Device> device) : device_(std::move(device)) {}

  const std::string& name() const noexcept override { return device_->name(); }
  bool is_cuda() const noexcept override { return device_->is_cuda(); }
  bool takes_teams() const noexcept override { return device_->takes_teams(); }
  int cores() const noexcept override { return device_->cores(); }
  engine::Buffer allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  engine::Buffer allocate_host(std::size_t bytes) override { return device_->allocate_host(bytes); }
  std::size_t free_memory() const override { return device_->free_memory(); }
  std::unique_ptr<engine::Stream> create_stream(const engine::StreamOptions& options) override {
    return device_->create_stream(options);
  }
  std::size_t stream_bytes(const engine::StreamOptions& options) const override {
    return device_->stream_bytes(options);
  }
  std::unique_ptr<engine::Operator> prepare(const engine::OperatorSpec& spec,
                                            const engine::PrepareOptions& options) override {
    return device_->prepare(spec, options);
  }
  engine::Layout plain_layout(const engine::Shape& shape, engine::DType dtype) const override {
    return device_->plain_layout(shape, dtype);
  }
  engine::Layout layout_of(const engine::Shape& shape, engine::DType dtype,
                           std::span<const std::int64_t> numbers) const override {
    return device_->layout_of(shape, dtype, numbers);
  }
  void convert(const engine::Layout& source_layout, const void* source, const engine::Layout& target_layout,
               void* target) override {
    device_->convert(source_layout, source, target_layout, target);
  }

 private:
  std::unique_ptr<engine::Device> device_;
};

}  // namespace arbalest::tests
