# `cmake --install BUILD --prefix DIR` makes a tree that runs wherever it is carried: bin/, configs/, and in lib/ every
# shared library that is not part of a base system. `--component measure` adds what bench/gpu.sh runs on a machine with
# a GPU. CUDA's own libraries stay outside: that machine must have them.

# Also for what the libraries in lib/ need themselves, which only the old kind of tag (DT_RPATH) covers.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

# The C and C++ runtimes belong to the machine: this one's libstdc++ asks for a newer glibc than all the rest, so taking it
# along would help no machine and bar some.
set(ARBALEST_LIBRARIES_OF_THE_MACHINE
  "^(linux-vdso|ld-linux.*|lib(anl|c|dl|gcc_s|m|mvec|nsl|pthread|resolv|rt|stdc\\+\\+|util))\\.so"
  "^lib(cublas|cublasLt|cuda|cudart|cudnn|cudnn_[a-z_]+|nccl|nvJitLink|nvrtc)\\.so")

# arbalest_install(<programs>... DESTINATION <folder of the tree> [COMPONENT <component>])
# The programs and the libraries that they need. A named component is installed only when it is asked for.
function(arbalest_install)
  cmake_parse_arguments(ARG "" "DESTINATION;COMPONENT" "" ${ARGN})
  set(component COMPONENT program)
  if(ARG_COMPONENT)
    set(component COMPONENT ${ARG_COMPONENT} EXCLUDE_FROM_ALL)
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
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION . COMPONENT program)
