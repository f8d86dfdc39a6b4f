#include "cli/exit_codes.h"

namespace arbalest::cli {

int exit_code(jobs::RunStatus status, int signal) {
  using jobs::RunStatus;
  switch (status) {
    case RunStatus::kTargetReached:
    case RunStatus::kCompleted: return kOk;
    case RunStatus::kStopped: return kSignalBase + signal;
    case RunStatus::kDiverged: return kDiverged;
    case RunStatus::kFailed: break;
  }
  return kInternalError;
}

}  // namespace arbalest::cli
