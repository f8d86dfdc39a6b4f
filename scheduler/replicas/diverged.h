// The error of a training that has diverged.
#pragma once

#include <limits>
#include <string>

#include "engine/base/error.h"

namespace arbalest::scheduler {

class Diverged final : public engine::Error {
 public:
  // `loss`: the loss that shows it, or NaN if something else does.
  explicit Diverged(const std::string& what, double loss = std::numeric_limits<double>::quiet_NaN())
      : Error(engine::ErrorKind::kDiverged, what), loss_(loss) {}

  double loss() const noexcept { return loss_; }

 private:
  double loss_;
};

}  // namespace arbalest::scheduler
