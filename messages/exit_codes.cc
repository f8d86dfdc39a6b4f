#include "messages/exit_codes.h"

namespace arbalest::jobs::exit_codes {

int exit_code(engine::ErrorKind kind) {
  using engine::ErrorKind;
  switch (kind) {
    case ErrorKind::kInternal: return kInternalError;
    case ErrorKind::kUsage: return kUsageError;
    case ErrorKind::kInvalidJob: return kJobInvalid;
    case ErrorKind::kData: return kDataMissing;
    case ErrorKind::kCheckpoint: return kCheckpointUnusable;
    case ErrorKind::kOutOfMemory: return kOutOfMemory;
    case ErrorKind::kDiverged: return kDiverged;
    case ErrorKind::kPeer: return kPeerFailed;
    case ErrorKind::kDevice: return kDeviceFailed;
  }
  return kInternalError;
}

}  // namespace arbalest::jobs::exit_codes
