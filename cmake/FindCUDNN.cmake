# cuDNN as CUDNN::cudnn. Hints: CUDNN_ROOT, the CUDA toolkit's folders, and the folder of the Python package nvidia-cudnn.
include(${CMAKE_CURRENT_LIST_DIR}/FoundLibrary.cmake)
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
arbalest_found_library(CUDNN CUDNN::cudnn cudnn_version.h "CUDNN_(MAJOR|MINOR|PATCHLEVEL)")
