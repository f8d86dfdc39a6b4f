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

# arbalest_install_library(<shared library> HEADERS <files>...)
# Installs the library, its headers, and what CMake and pkg-config need to find it: the component `development`, which is
# installed only if requested. A tree also gets the libraries that it needs.
function(arbalest_install_library library)
  cmake_parse_arguments(ARG "" "" "HEADERS" ${ARGN})
  set(component COMPONENT development EXCLUDE_FROM_ALL)
  set(ARBALEST_LIBDIR lib)
  set(dependencies)
  if(ARBALEST_LAYOUT STREQUAL "SYSTEM")
    include(GNUInstallDirs)
    set(ARBALEST_LIBDIR ${CMAKE_INSTALL_LIBDIR})
  else()
    set(dependencies RUNTIME_DEPENDENCY_SET arbalest_development)
    set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN")
    target_link_options(${library} PRIVATE LINKER:--disable-new-dtags)
  endif()
  install(TARGETS ${library} EXPORT ArbalestTargets ${dependencies} LIBRARY DESTINATION ${ARBALEST_LIBDIR} ${component})
  if(dependencies)
    install(RUNTIME_DEPENDENCY_SET arbalest_development PRE_EXCLUDE_REGEXES ${ARBALEST_LIBRARIES_OF_THE_MACHINE}
            LIBRARY DESTINATION ${ARBALEST_LIBDIR} ${component})
  endif()
  install(FILES ${ARG_HEADERS} DESTINATION include/arbalest ${component})

  set(made ${PROJECT_BINARY_DIR}/library)
  set(templates ${PROJECT_SOURCE_DIR}/packaging/library)
  set(cmake_folder ${ARBALEST_LIBDIR}/cmake/Arbalest)
  include(CMakePackageConfigHelpers)
  configure_package_config_file(${templates}/ArbalestConfig.cmake.in ${made}/ArbalestConfig.cmake
    INSTALL_DESTINATION ${cmake_folder} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${made}/ArbalestConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${made}/ArbalestConfig.cmake ${made}/ArbalestConfigVersion.cmake DESTINATION ${cmake_folder} ${component})
  install(EXPORT ArbalestTargets NAMESPACE arbalest:: DESTINATION ${cmake_folder} ${component})

  string(REGEX REPLACE "[^/]+" ".." ARBALEST_PREFIX_FROM_PKGCONFIG ${ARBALEST_LIBDIR}/pkgconfig)
  configure_file(${templates}/arbalest.pc.in ${made}/arbalest.pc @ONLY)
  install(FILES ${made}/arbalest.pc DESTINATION ${ARBALEST_LIBDIR}/pkgconfig ${component})
endfunction()

install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)" ALL_COMPONENTS)  # what --strip sets
if(ARBALEST_LAYOUT STREQUAL "SYSTEM")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION share/arbalest COMPONENT program)
else()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION . COMPONENT program)
endif()
