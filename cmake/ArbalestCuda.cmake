# Decides whether the CUDA device is built. AUTO: if the toolkit and cuDNN are found. ON: always, with an error if they
# are missing. OFF: never. Without NCCL a job can use only one GPU.
set(ARBALEST_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON or OFF")
set_property(CACHE ARBALEST_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ARBALEST_HAS_CUDA FALSE)

if(ARBALEST_CUDA)  # AUTO counts as true
  include(CheckLanguage)
  check_language(CUDA)
  find_package(CUDAToolkit 12.4 QUIET)
  find_package(CUDNN 9 QUIET)
  find_package(NCCL 2.18 QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND AND CUDNN_FOUND)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that CUDA 13 supports C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # like CUDA::cudart, because two copies of the runtime would be independent
    set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.9)
      string(APPEND CMAKE_CUDA_FLAGS_RELEASE " --compress-mode=size")  # device code a quarter smaller
    endif()
    set(ARBALEST_HAS_CUDA TRUE)
    set(nccl "no NCCL 2.18 or newer (hint: NCCL_ROOT), so one GPU a job")
    if(NCCL_FOUND)
      set(nccl "NCCL ${NCCL_VERSION}")
    endif()
    message(STATUS "CUDA device: CUDA ${CUDAToolkit_VERSION}, cuDNN ${CUDNN_VERSION}, ${nccl}")
  elseif(ARBALEST_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA device: not built (needs the CUDA toolkit 12.4 and cuDNN 9 or newer)")
  else()
    message(FATAL_ERROR "ARBALEST_CUDA is ON: compiler '${CMAKE_CUDA_COMPILER}', toolkit '${CUDAToolkit_VERSION}', "
                        "cuDNN '${CUDNN_LIBRARY}'; hints: CUDACXX, CUDNN_ROOT")
  endif()
endif()
