// The exit code of an error or of a run, and the text about exit codes in --help.
#pragma once

#include "engine/base/error.h"
#include "messages/exit_codes.h"
#include "train/context/run_observer.h"

namespace arbalest::cli {

using namespace jobs::exit_codes;
using jobs::exit_codes::exit_code;  // of an engine::ErrorKind

inline constexpr const char* kExitCodesHelp =
    "Exit codes: 0 done, whether or not a target accuracy was reached; 1 internal error, or a file\n"
    "  cannot be written; 2 usage, such as a wrong --set; 3 job file invalid; 4 data missing or\n"
    "  corrupt; 5 saved model damaged or changed; 6 out of memory or disk space; 7 training diverged;\n"
    "  8 another device or process failed; 9 target accuracy not reached (bench, tune); 10 a device or\n"
    "  its driver fails; 129, 130 or 143 stopped by SIGHUP, SIGINT or SIGTERM after saving (6 if\n"
    "  saving failed).";

// `signal`: signal that stopped the run, or 0.
int exit_code(jobs::RunStatus status, int signal);

}  // namespace arbalest::cli
