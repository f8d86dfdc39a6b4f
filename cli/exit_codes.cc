#include "cli/exit_codes.h"

namespace arbalest::cli {

int exit_code(engine::ErrorKind kind) {
  using engine::ErrorKind;
  switch (kind) {
    case ErrorKind::kInternal:
      return kInternalError;
    case ErrorKind::kUsage:
      return kUsageError;
    case ErrorKind::kInvalidJob:
      return kJobInvalid;
    case ErrorKind::kData:
      return kDataMissing;
    case ErrorKind::kCheckpoint:
      return kCheckpointUnusable;
    case ErrorKind::kOutOfMemory:
      return kOutOfMemory;
    case ErrorKind::kDiverged:
      return kDiverged;
    case ErrorKind::kPeer:
      return kPeerFailed;
    case ErrorKind::kDevice:
      return kDeviceFailed;
  }
  return kInternalError;
}

int exit_code(jobs::RunStatus status, int signal) {
  using jobs::RunStatus;
  switch (status) {
    case RunStatus::kTargetReached:
    case RunStatus::kCompleted:
      return kOk;
    case RunStatus::kStopped:
      return kSignalBase + signal;
    case RunStatus::kDiverged:
      return kDiverged;
    case RunStatus::kFailed:
      break;
  }
  return kInternalError;
}

}  // namespace arbalest::cli
