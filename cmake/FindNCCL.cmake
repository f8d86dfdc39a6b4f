# NCCL as NCCL::nccl. Hints: NCCL_ROOT, the CUDA toolkit's folders, and the folder of the Python package nvidia-nccl.
include(${CMAKE_CURRENT_LIST_DIR}/FoundLibrary.cmake)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
arbalest_found_library(NCCL NCCL::nccl nccl.h "NCCL_(MAJOR|MINOR|PATCH) ")
