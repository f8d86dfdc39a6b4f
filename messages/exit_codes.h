// The program's exit codes. Scripts rely on them.
#pragma once

#include "engine/base/error.h"

namespace arbalest::jobs::exit_codes {

inline constexpr int kOk = 0;
inline constexpr int kInternalError = 1;
inline constexpr int kUsageError = 2;
inline constexpr int kJobInvalid = 3;
inline constexpr int kDataMissing = 4;
inline constexpr int kCheckpointUnusable = 5;
inline constexpr int kOutOfMemory = 6;  // memory or disk
inline constexpr int kDiverged = 7;
inline constexpr int kPeerFailed = 8;
inline constexpr int kTargetNotReached = 9;  // from bench, and from tune --objective time-to-accuracy
inline constexpr int kDeviceFailed = 10;
inline constexpr int kSignalBase = 128;  // 129 after SIGHUP, 130 after SIGINT, 143 after SIGTERM

int exit_code(engine::ErrorKind kind);

}  // namespace arbalest::jobs::exit_codes
