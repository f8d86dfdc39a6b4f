// Which source the program was built from.
#pragma once

namespace arbalest::cli {

// The commit, "0123456789ab", with "-dirty" if files of it were changed; "unknown" if the source was no checkout of
// git. The build writes it (cmake/SourceCommit.cmake).
const char* source_commit() noexcept;

}  // namespace arbalest::cli
