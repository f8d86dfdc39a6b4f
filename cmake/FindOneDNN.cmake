# oneDNN as OneDNN::dnnl. Debian's CMake file for it requires OpenCL's headers, which we do not use.
# Hint: OneDNN_ROOT.
include(${CMAKE_CURRENT_LIST_DIR}/FoundLibrary.cmake)
find_path(OneDNN_INCLUDE_DIR dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
arbalest_found_library(OneDNN OneDNN::dnnl oneapi/dnnl/dnnl_version.h "DNNL_VERSION_(MAJOR|MINOR|PATCH)")
