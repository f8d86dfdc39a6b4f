# Run by the build. Writes OUTPUT, a C++ file with the commit of the checkout in SOURCE, if the commit has changed.
#   cmake -DSOURCE=dir -DOUTPUT=file.cc -P SourceCommit.cmake
# The commit is "unknown" without git, if SOURCE is not a checkout, or if it is inside another project's checkout.
set(commit "")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix
    OUTPUT_VARIABLE prefix RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND prefix STREQUAL "")
    execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "messages/source_commit.h"

const char* arbalest::jobs::source_commit() noexcept { return "@commit@"; }
]])
