// One GPU: its memory pool, and streams with the libraries' handles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/choice/kernel_answers.h"
#include "engine/cuda/choice/kernel_chooser.h"
#include "engine/cuda/choice/trial_stream.h"
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
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_host(std::size_t bytes) override;
  std::size_t free_memory() const override;
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override;
  std::size_t stream_bytes(const StreamOptions& options) const override;
  std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options) override;
  std::vector<KernelChoice> kernel_choices() const override { return answers_.given(); }
  void take_kernel_choices(std::span<const KernelChoice> recorded) override { answers_.take(recorded); }
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
  KernelAnswers answers_;
  TrialStream trials_;
  mutable LibraryQuestions questions_;
  KernelChooser chooser_;
};

}  // namespace arbalest::engine::cuda
