# `cmake --install BUILD --prefix DIR` makes a tree that can be copied to other machines: bin/, configs/, and in lib/
# every shared library that is not part of a base system. `--component measure` adds the programs that bench/gpu.sh runs
# on a machine with a GPU. CUDA's own libraries are not copied, so that machine must have them.

set(ARBALEST_LAYOUT TREE CACHE STRING "TREE: with its libraries, to copy; SYSTEM: for packages, whose dependencies bring them")
set_property(CACHE ARBALEST_LAYOUT PROPERTY STRINGS TREE SYSTEM)

# This path must also apply to dependencies of the libraries in lib/. Only the old kind of tag (DT_RPATH) covers them.
if(ARBALEST_LAYOUT STREQUAL "SYSTEM")
  set(CMAKE_INSTALL_RPATH "")
else()
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
endif()

# The C and C++ runtimes come from the machine. The build machine's libstdc++ needs a newer glibc than all other files.
# So copying it would not help any machine, and some machines could not run it.
set(ARBALEST_LIBRARIES_OF_THE_MACHINE
  "^(linux-vdso|ld-linux.*|lib(anl|c|dl|gcc_s|m|mvec|nsl|pthread|resolv|rt|stdc\\+\\+|util))\\.so"
  "^lib(cublas|cublasLt|cuda|cudart|cudnn|cudnn_[a-z_]+|nccl|nvJitLink|nvrtc)\\.so")

# arbalest_install(<programs>... DESTINATION <folder of the tree> [COMPONENT <component>])
# Installs the programs and the libraries that they need. A named component is installed only if requested.
function(arbalest_install)
  cmake_parse_arguments(ARG "" "DESTINATION;COMPONENT" "" ${ARGN})
  set(component COMPONENT program)
  if(ARG_COMPONENT)
    set(component COMPONENT ${ARG_COMPONENT} EXCLUDE_FROM_ALL)
  endif()
  if(ARBALEST_LAYOUT STREQUAL "SYSTEM")
    install(TARGETS ${ARG_UNPARSED_ARGUMENTS} RUNTIME DESTINATION ${ARG_DESTINATION} ${component})
    return()
  endif()
  foreach(program IN LISTS ARG_UNPARSED_ARGUMENTS)
    target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
  endforeach()
  install(TARGETS ${ARG_UNPARSED_ARGUMENTS} RUNTIME_DEPENDENCY_SET arbalest_${ARG_DESTINATION}
          RUNTIME DESTINATION ${ARG_DESTINATION} ${component})
  install(RUNTIME_DEPENDENCY_SET arbalest_${ARG_DESTINATION}
          PRE_EXCLUDE_REGEXES ${ARBALEST_LIBRARIES_OF_THE_MACHINE}
          LIBRARY DESTINATION lib ${component})
endfunction()

install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)" ALL_COMPONENTS)  # what --strip sets
if(ARBALEST_LAYOUT STREQUAL "SYSTEM")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION share/arbalest COMPONENT program)
else()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION . COMPONENT program)
endif()
