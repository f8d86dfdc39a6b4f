// The source from which the program was built.
#pragma once

namespace arbalest::jobs {

// The commit, such as "0123456789ab", with "-dirty" if files had changes; "unknown" outside a git checkout. The build
// writes it (cmake/SourceCommit.cmake).
const char* source_commit() noexcept;

}  // namespace arbalest::jobs
