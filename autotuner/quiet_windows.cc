#include "autotuner/quiet_windows.h"

namespace arbalest::autotuner {

bool QuietWindows::counts(const Window& window) {
  all_.add(window.processor);
  if (!window.processor.is_known() || window.processor.lost_share() <= options_.most_lost) return true;
  if (is_busy_) return true;
  if (repeats_ == options_.most_repeats) {
    is_busy_ = true;
    return true;
  }
  ++repeats_;
  ++left_out_;
  return false;
}

}  // namespace arbalest::autotuner
