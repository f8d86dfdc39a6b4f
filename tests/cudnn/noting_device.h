// A device that records the convolutions that it prepares.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/cudnn/convolution.h"
#include "tests/support/forwarding_device.h"

namespace arbalest::tests::cudnn {

// Device "cuda:0". In place of each convolution it prepares a small one, because preparing runs trials, and large
// convolutions would be slow on the stand-in. Plans for this device cannot be run.
class NotingDevice final : public ForwardingDevice {
 public:
  struct Note {
    Convolution convolution;
    bool input_gradient;
  };

  NotingDevice();

  const std::vector<Note>& notes() const { return notes_; }

  std::unique_ptr<engine::Operator> prepare(const engine::OperatorSpec& spec,
                                            const engine::PrepareOptions& options) override;

 private:
  std::unique_ptr<engine::Operator> note(const engine::Conv2dSpec& spec, const engine::PrepareOptions& options);

  std::vector<Note> notes_;
};

}  // namespace arbalest::tests::cudnn
