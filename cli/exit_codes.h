// The program's exit codes. --help prints them, and scripts rely on them.
#pragma once

#include "engine/error.h"
#include "jobs/run/run_observer.h"

namespace arbalest::cli {

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

inline constexpr const char* kExitCodesHelp =
    "Exit codes: 0 done, whether or not a target accuracy was reached; 1 internal error; 2 usage,\n"
    "  such as a wrong --set; 3 job file invalid; 4 data missing or corrupt; 5 saved model damaged\n"
    "  or changed; 6 out of memory or disk space; 7 training diverged; 8 another device or process\n"
    "  failed; 9 target accuracy not reached (bench, tune); 10 a device or its driver fails;\n"
    "  129, 130 or 143 stopped by SIGHUP, SIGINT or SIGTERM after saving.";

int exit_code(engine::ErrorKind kind);

// `signal`: signal that stopped the run, or 0.
int exit_code(jobs::RunStatus status, int signal);

}  // namespace arbalest::cli
