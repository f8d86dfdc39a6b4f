# xxHash as xxHash::xxhash. Hint: xxHash_ROOT.
include(${CMAKE_CURRENT_LIST_DIR}/FoundLibrary.cmake)
find_path(xxHash_INCLUDE_DIR xxhash.h)
find_library(xxHash_LIBRARY xxhash)
arbalest_found_library(xxHash xxHash::xxhash xxhash.h "XXH_VERSION_(MAJOR|MINOR|RELEASE) ")
