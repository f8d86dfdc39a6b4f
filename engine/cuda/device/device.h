// One GPU: its memory pool, and streams with the libraries' handles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/device/library_questions.h"
#include "engine/device.h"
#include "engine/device_options.h"

namespace arbalest::engine::cuda {

class CudaDevice final : public Device {
 public:
  // Throws ErrorKind::kInvalidJob if the device does not exist, and kDevice if it is too old.
  CudaDevice(const DeviceSpec& spec, const DeviceOptions& options);

  const std::string& name() const noexcept override { return name_; }
  bool is_cuda() const noexcept override { return true; }
  bool takes_teams() const noexcept override { return true; }
  int cores() const noexcept override { return 1; }
  int ordinal() const noexcept { return ordinal_; }
  std::vector<std::string> kernel_choices() const { return questions_.choices(); }
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_host(std::size_t bytes) override;
  std::size_t free_memory() const override;
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override;
  std::size_t stream_bytes(const StreamOptions& options) const override;
  std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options) override;
  Layout plain_layout(const Shape& shape, DType dtype) const override;
  Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) const override;
  void convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) override;

 private:
  void make_current() const;

  std::string name_;
  int ordinal_;
  bool graphs_;
  StreamObserver* observer_;
  mutable CaptureGate gate_;
  mutable LibraryQuestions questions_;
};

}  // namespace arbalest::engine::cuda
